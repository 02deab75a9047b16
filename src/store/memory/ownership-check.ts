import type { Denied, Refused } from '../store.js';
import { refusal } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import type { Workflow } from './tables.js';

/** What every write of an execution comes with. */
export interface OwnershipCheck {
  readonly workflowId: string;
  readonly token: string;
  readonly version: number;
  /** How a retry recognises its own earlier commit. */
  readonly nonce: string;
}

/** What a write came to. */
export type Tried<Answer> =
  | {
      readonly kind: 'answered';
      readonly answer: Answer;
      /** By how much it raised the record version. */ readonly raised: 0 | 1;
    }
  /** Same owner, another version: nothing was written. */
  | { readonly kind: 'moved'; readonly version: number };

/** The workflow, if token and version are as the writer believes: the predicate of every write. */
export function owned(db: MemoryDatabase, { workflowId, token, version }: OwnershipCheck): Workflow | undefined {
  const workflow = db.workflows.get(workflowId);
  return workflow?.ownerToken === token && workflow.recordVersion === version ? workflow : undefined;
}

export function written<Answer>(answer: Answer): Tried<Answer> {
  return { kind: 'answered', answer, raised: 1 };
}

/** An answer without a write. */
export function unwritten<Answer>(answer: Answer): Tried<Answer> {
  return { kind: 'answered', answer, raised: 0 };
}

/**
 * Says why a write was refused: the failure table of docs/protocol.md. Only for those whose nonce is not on record.
 *
 * @param seq The number under which the write would have recorded something.
 */
export function refused(db: MemoryDatabase, check: OwnershipCheck, seq?: number): Tried<Denied | Refused> {
  const workflow = db.workflows.get(check.workflowId);
  if (workflow === undefined) return unwritten({ kind: 'missing' });
  if (workflow.ownerToken !== check.token) return unwritten({ kind: 'lost' });
  const result = seq === undefined ? undefined : workflow.results.get(seq);
  if (result !== undefined) return unwritten({ kind: 'nondeterminism', found: `${result.kind} ${result.name}` });
  return { kind: 'moved', version: workflow.recordVersion };
}

/** Token and version are right, and the number has been used: by this very execution. */
export function usedTwice(seq: number): Tried<Denied> {
  return unwritten({ kind: 'nondeterminism', found: `an entry number ${String(seq)}` });
}

export function unacceptable(constraint: string): Tried<Refused> {
  return unwritten(refusal(constraint));
}
