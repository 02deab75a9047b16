import type { StepRecord, WriteAnswer } from '../store.js';
import { isOutputOrError } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import {
  owned,
  refused,
  unacceptable,
  usedTwice,
  written,
  type OwnershipCheck,
  type Tried,
} from './ownership-check.js';
import { invalidEvent, putEvents } from './outbox.js';
import type { Workflow } from './tables.js';

/** What a write adds to a workflow's results. */
type NewResult = Pick<StepRecord, 'seq' | 'name' | 'kind' | 'output' | 'elapsedMs'> &
  Partial<Pick<StepRecord, 'error' | 'attempts' | 'attemptErrors' | 'childId'>>;

/** Records the result of a step; see checkpoint_one. */
export function recordStep(db: MemoryDatabase, check: OwnershipCheck, step: StepRecord): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedResult(db, check, step.seq) ?? written({ kind: 'written' });
  if (!isOutputOrError(step.output, step.error)) return unacceptable('output_or_error');
  if (workflow.results.has(step.seq)) return usedTwice(step.seq);
  const { events = [] } = step;
  const invalid = events.map(invalidEvent).find((constraint) => constraint !== undefined);
  if (invalid !== undefined) return unacceptable(invalid);
  addResult(db, workflow, check.nonce, step);
  putEvents(db, workflow, step.seq, events);
  return written({ kind: 'written' });
}

/** Why a result was not written; undefined: it is on record, by an earlier try whose reply was lost. */
export function refusedResult(
  db: MemoryDatabase,
  check: OwnershipCheck,
  seq: number,
): ReturnType<typeof refused> | undefined {
  const found = db.workflows.get(check.workflowId)?.results.get(seq);
  return found?.nonce === check.nonce ? undefined : refused(db, check, seq);
}

/** Raises the record version, under which the result is recorded. */
export function addResult(db: MemoryDatabase, workflow: Workflow, nonce: string, result: NewResult): void {
  const now = db.now();
  raiseVersion(db, workflow);
  workflow.results.set(result.seq, {
    seq: result.seq,
    name: result.name,
    kind: result.kind,
    output: result.output,
    error: result.error ?? null,
    attempts: result.attempts ?? 1,
    attemptErrors: result.attemptErrors ?? null,
    childId: result.childId ?? null,
    recordVersion: workflow.recordVersion,
    epoch: workflow.epoch,
    nonce,
    startedAt: now - result.elapsedMs,
    completedAt: now,
  });
}

/** What every write to a workflow's row does. */
export function raiseVersion(db: MemoryDatabase, workflow: Workflow): void {
  workflow.recordVersion += 1;
  workflow.updatedAt = db.now();
}
