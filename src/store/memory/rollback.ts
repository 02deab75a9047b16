import type { RollbackRow } from '../admin-store.js';
import type { CompensationFailure, PlannedCompensation, RollbackCause, RollbackRecord } from '../rollback-store.js';
import type { WriteAnswer } from '../store.js';
import { giveUp, refusedGivingUp } from './complete.js';
import type { MemoryDatabase } from './memory-database.js';
import { owned, refused, usedTwice, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { raiseVersion } from './record-result.js';
import type { CompensationRow, ResultRow, Workflow } from './tables.js';

/** Records the marker of a rollback and gives the workflow up; see begin_rollback. */
export function beginRollback(
  db: MemoryDatabase,
  check: OwnershipCheck,
  { seq, cause, error }: RollbackRecord,
): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const tried = refusedGivingUp(db, check);
    return tried.kind === 'moved' ? refused(db, check, seq) : tried;
  }
  if (workflow.results.has(seq)) return usedTwice(seq);
  giveUp(db, workflow, check.nonce, 'rolling back');
  addMarker(db, workflow, { seq, cause, error, epoch: workflow.epoch, nonce: check.nonce });
  return written({ kind: 'written' });
}

/** The record version has been raised for it. The workflow can be claimed at once, with a budget of attempts of its own. */
export function addMarker(
  db: MemoryDatabase,
  workflow: Workflow,
  marker: RollbackRecord & Pick<ResultRow, 'epoch' | 'nonce'>,
): void {
  const now = db.now();
  const { seq, cause: name, error, epoch, nonce } = marker;
  workflow.status = 'ENQUEUED';
  workflow.wakeAt = null;
  workflow.attempts = 0;
  workflow.attention = null;
  workflow.attentionDetail = null;
  const rest = { output: null, attempts: 1, attemptErrors: null, childId: null, startedAt: now, completedAt: now };
  const { recordVersion } = workflow;
  workflow.results.set(seq, { ...rest, seq, name, kind: 'rollback', error, epoch, nonce, recordVersion });
  db.notify({ topic: 'work' });
}

/** Records what is going to be run; see plan_rollback. */
export function planRollback(
  db: MemoryDatabase,
  check: OwnershipCheck,
  plan: readonly PlannedCompensation[],
): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const intents = [...(db.workflows.get(check.workflowId)?.intents.values() ?? [])];
    return intents.some(({ nonce }) => nonce === check.nonce) ? written({ kind: 'written' }) : refused(db, check);
  }
  raiseVersion(db, workflow);
  const { epoch, recordVersion } = workflow;
  for (const planned of plan) {
    if (workflow.intents.has(planned.seq)) continue;
    const rest = { childId: null, wakeAt: null, attempts: 0, failure: null, recordedAt: db.now() };
    workflow.intents.set(planned.seq, {
      ...rest,
      ...planned,
      kind: 'compensation',
      recordVersion,
      epoch,
      nonce: check.nonce,
    });
  }
  return written({ kind: 'written' });
}

/** Keeps the error of a compensation that failed for good, and blocks the workflow; see fail_compensation. */
export function failCompensation(
  db: MemoryDatabase,
  check: OwnershipCheck,
  { seq, error, detail }: CompensationFailure,
): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedGivingUp(db, check);
  giveUp(db, workflow, check.nonce, 'blocked');
  workflow.status = 'BLOCKED';
  workflow.attention = 'COMPENSATION_FAILED';
  workflow.attentionDetail = detail;
  const planned = compensationsOf(workflow).find((row) => row.seq === seq);
  if (planned !== undefined) planned.failure = error;
  return written({ kind: 'written' });
}

/** What is planned, in the order in which it runs. */
export function readPlan(db: MemoryDatabase, workflowId: string): PlannedCompensation[] {
  const workflow = db.workflows.get(workflowId);
  return workflow === undefined
    ? []
    : compensationsOf(workflow).map(({ seq, name, undoes }) => ({ seq, name, undoes }));
}

export function markerOf({ results }: Workflow): ResultRow | undefined {
  return [...results.values()].find(({ kind }) => kind === 'rollback');
}

/** See list_rollback. */
export function getRollback(db: MemoryDatabase, workflowId: string): RollbackRow | null {
  const workflow = db.workflows.get(workflowId);
  const marker = workflow === undefined ? undefined : markerOf(workflow);
  if (workflow === undefined || marker === undefined) return null;
  return {
    // The names of markers are causes.
    cause: marker.name as RollbackCause,
    seq: marker.seq,
    beganAt: new Date(marker.startedAt),
    error: marker.error ?? '',
    compensations: compensationsOf(workflow).map((row) => compensationRow(row, workflow.results.get(row.seq))),
  };
}

function compensationRow(
  { seq, name, undoes, failure }: CompensationRow,
  result: ResultRow | undefined,
): RollbackRow['compensations'][number] {
  if (result === undefined) {
    const state = failure === null ? 'pending' : 'failed';
    return { seq, name, undoes, state, attempts: 0, completedAt: null, failure };
  }
  const { epoch, attempts, completedAt } = result;
  const state = epoch === 0 ? 'by-hand' : attempts === 0 ? 'not-needed' : 'done';
  return { seq, name, undoes, state, attempts, completedAt: new Date(completedAt), failure: null };
}

export function compensationsOf({ intents }: Workflow): CompensationRow[] {
  return [...intents.values()]
    .filter((row) => row.kind === 'compensation' && 'undoes' in row)
    .sort((one, other) => one.seq - other.seq);
}
