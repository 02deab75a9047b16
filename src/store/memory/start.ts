import type { Refused, StartAnswer, StartRequest } from '../store.js';
import { isWorkflowId, refusal } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import { newWorkflow, type OwnershipRow, type Workflow } from './tables.js';

/** Starts a workflow that is to run at once in the calling executor; see start_batch. */
export function start(db: MemoryDatabase, request: StartRequest, nonce: string): StartAnswer {
  const { workflowId, token } = request;
  const known = db.workflows.get(workflowId);
  if (known !== undefined && known.ownerToken !== token) {
    return known.input.nonce === nonce ? { kind: 'lost' } : { kind: 'exists', name: known.name, status: known.status };
  }
  if (known === undefined) {
    const refused = insert(db, request, nonce);
    if (refused !== undefined) return refused;
  }
  return { kind: 'started', ownership: { workflowId, token, epoch: 1, recordVersion: 1 } };
}

function insert(db: MemoryDatabase, request: StartRequest, nonce: string): Refused | undefined {
  if (!isWorkflowId(request.workflowId)) return refusal('workflow_id_length');
  const { executorId, incarnation } = request.executor;
  db.workflows.set(request.workflowId, runningWorkflow(db, request, { ...request, executorId, incarnation, nonce }));
  return undefined;
}

/** A workflow that its starter owns from the beginning. */
export function runningWorkflow(
  db: MemoryDatabase,
  request: Pick<
    StartRequest,
    'workflowId' | 'name' | 'instance' | 'input' | 'maxAttempts' | 'timeoutMs' | 'attributes'
  >,
  by: Pick<Workflow, 'appVersion'> & {
    readonly executorId: string;
    readonly incarnation: number;
    readonly token: string;
    readonly nonce: string;
    readonly parent?: Workflow['parent'];
  },
): Workflow {
  const now = db.now();
  const { executorId, incarnation } = by;
  return newWorkflow({
    workflowId: request.workflowId,
    name: request.name,
    instance: request.instance,
    status: 'PENDING',
    ownerToken: by.token,
    epoch: 1,
    recordVersion: 1,
    executorId,
    incarnation,
    attempts: 1,
    maxAttempts: request.maxAttempts,
    appVersion: by.appVersion,
    timeoutMs: request.timeoutMs,
    deadline: request.timeoutMs === null ? null : now + request.timeoutMs,
    attributes: request.attributes,
    parent: by.parent ?? null,
    createdAt: now,
    startedAt: now,
    input: { text: request.input, nonce: by.nonce },
    ownerships: [newOwnership({ epoch: 1, executorId, incarnation, reason: 'started', ownedAt: now })],
  });
}

export function newOwnership(
  given: Pick<OwnershipRow, 'epoch' | 'executorId' | 'incarnation' | 'reason' | 'ownedAt'>,
): OwnershipRow {
  return { ...given, endedAt: null, endedHow: null, nonce: null };
}

/** Ends the ownership that is still open, if one is. */
export function endOwnership(workflow: Workflow, endedAt: number, endedHow: string, nonce: string | null): void {
  const last = workflow.ownerships.at(-1);
  if (last?.endedAt !== null) return;
  last.endedAt = endedAt;
  last.endedHow = endedHow;
  last.nonce = nonce;
}
