import type { ClaimRequest } from '../../store.js';
import { runsOnAnyVersion } from '../control/verbs.js';
import { isOwnedBy } from '../executors.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { Workflow } from '../tables.js';

/** What one claim has picked so far, and what it has to say of what it left. */
export interface Claim {
  readonly db: MemoryDatabase;
  readonly request: ClaimRequest;
  /** Of executors whose leases have expired. */
  readonly recovered: Workflow[];
  /** Whose moment has come. */
  readonly due: Workflow[];
  readonly picked: Workflow[];
  isLimited: boolean;
  isSoon: boolean;
  againInMs: number | null;
}

export function newClaim(db: MemoryDatabase, request: ClaimRequest): Claim {
  return {
    db,
    request,
    recovered: [],
    due: [],
    picked: [],
    isLimited: false,
    isSoon: false,
    againInMs: null,
  };
}

/** How many more it may pick. */
export function leftOf({ request, recovered, due, picked }: Claim): number {
  return request.limit - recovered.length - due.length - picked.length;
}

export function askAgain(claim: Claim, inMs: number | null): void {
  if (inMs !== null) claim.againInMs = Math.min(claim.againInMs ?? Infinity, inMs);
}

/** Whether the executor knows its name and its app version. */
export function isForClaimer({ request }: Claim, workflow: Workflow): boolean {
  return (
    request.names.includes(workflow.name) &&
    (workflow.appVersion === request.appVersion || runsOnAnyVersion(workflow)) &&
    isAskedFor(request, workflow)
  );
}

export function isAskedFor({ only }: ClaimRequest, { workflowId }: Workflow): boolean {
  return only === undefined || only.includes(workflowId);
}

/** What executors own whose leases have expired, executor by executor. */
export function abandoned({ db }: Claim): Workflow[] {
  const dead = db.executors.filter(({ leaseUntil }) => leaseUntil <= db.now());
  const workflows = [...db.workflows.values()];
  return dead.flatMap((executor) => workflows.filter((workflow) => isOwnedBy(workflow, executor)));
}
