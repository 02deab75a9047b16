import type { OutcomeRecord, ReleaseRecord, NextRun, WriteAnswer } from '../store.js';
import { UPDATE_PREFIX } from '../update-prefix.js';
import { isOutputOrError } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import { giveMessagesBack } from './messages.js';
import { owned, refused, unacceptable, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { raiseVersion } from './record-result.js';
import { endOwnership } from './start.js';
import type { OutcomeRow, Workflow } from './tables.js';
import { unknownOutcomes } from './unknown.js';
import { wakeWaiters } from './wake-ups.js';

// The ways in which an execution gives its ownership up.

/** Records the outcome; see complete_batch. */
export function complete(db: MemoryDatabase, check: OwnershipCheck, record: OutcomeRecord): Tried<WriteAnswer> {
  const { status, output, error, attention } = record;
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const isMine = db.workflows.get(check.workflowId)?.outcome?.nonce === check.nonce;
    return isMine ? written({ kind: 'written' }) : refused(db, check);
  }
  if (!isOutputOrError(output, error) || (status === 'SUCCESS') !== (output !== null)) {
    return unacceptable('outcome_is_output_or_error');
  }
  giveUp(db, workflow, check.nonce, 'completed');
  end(db, workflow, { status, output, error, nonce: check.nonce });
  const unknown = attention === 'OUTCOME_UNKNOWN' ? unknownOutcomes(workflow) : null;
  workflow.attention = attention === 'OUTCOME_UNKNOWN' && unknown === null ? null : attention;
  workflow.attentionDetail = unknown;
  return written({ kind: 'written' });
}

/** Gives a workflow up without an outcome; see release_workflow. */
export function release(db: MemoryDatabase, check: OwnershipCheck, record: ReleaseRecord): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedGivingUp(db, check);
  giveUp(db, workflow, check.nonce, record.to === 'BLOCKED' ? 'blocked' : 'released');
  workflow.status = record.to;
  workflow.wakeAt = record.to === 'DELAYED' ? db.now() + record.wakeInMs : null;
  workflow.attention = record.to === 'BLOCKED' ? record.attention : null;
  workflow.attentionDetail = record.to === 'BLOCKED' ? record.detail : null;
  if (record.to !== 'BLOCKED' && record.unspendAttempt) unspendAttempt(workflow);
  if (record.to === 'ENQUEUED') db.notify({ topic: 'work' });
  return written({ kind: 'written' });
}

/** Has the workflow begin anew with another input; see continue_workflow. */
export function continueWorkflow(db: MemoryDatabase, check: OwnershipCheck, run: NextRun): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedGivingUp(db, check);
  const leavesUpdates = hasUnansweredUpdates(workflow);
  const unreceived = run.unreceived.filter((seq) => workflow.results.get(seq)?.kind === 'receive');
  workflow.results.clear();
  workflow.intents.clear();
  giveMessagesBack(workflow, (seq) => unreceived.includes(seq));
  // The nonce stays: it is that of the start.
  workflow.input = { text: run.input, nonce: workflow.input.nonce };
  giveUp(db, workflow, check.nonce, 'continued');
  workflow.status = 'ENQUEUED';
  workflow.wakeAt = null;
  workflow.attempts = 0;
  workflow.firstSeq = run.firstSeq;
  workflow.anyVersion = true;
  workflow.attention = null;
  workflow.attentionDetail = null;
  // Whoever waits for the replies waits in vain.
  if (leavesUpdates) {
    wakeWaiters(db, workflow.workflowId);
    db.notify({ topic: 'message', workflowIds: [workflow.workflowId] });
  }
  db.notify({ topic: 'work' });
  return written({ kind: 'written' });
}

/** Whether this run has received updates that it has not answered. An answer that could not be recorded is followed by one that was. */
function hasUnansweredUpdates({ results }: Workflow): boolean {
  const calls = [...results.values()].filter(({ name }) => name.startsWith(UPDATE_PREFIX));
  const isAnswer = ({ kind, output }: (typeof calls)[number]): boolean => kind === 'event' && output !== null;
  return calls.filter(({ kind }) => kind === 'receive').length > calls.filter(isAnswer).length;
}

/** Why an ownership was not given up: unless it was, by an earlier try whose reply was lost. */
export function refusedGivingUp(db: MemoryDatabase, check: OwnershipCheck): Tried<WriteAnswer> {
  const ownerships = db.workflows.get(check.workflowId)?.ownerships ?? [];
  const isMine = ownerships.some(({ nonce }) => nonce === check.nonce);
  return isMine ? written({ kind: 'written' }) : refused(db, check);
}

/** What comes next is the caller's to write. */
export function giveUp(db: MemoryDatabase, workflow: Workflow, nonce: string, how: string): void {
  workflow.ownerToken = null;
  raiseVersion(db, workflow);
  endOwnership(workflow, db.now(), how, nonce);
}

/** Being given back, or suspended, is not an attempt. */
export function unspendAttempt(workflow: Workflow): void {
  workflow.attempts = Math.max(0, workflow.attempts - 1);
}

/** Gives a workflow that nobody owns its outcome, and wakes whoever waits for it. */
export function end(db: MemoryDatabase, workflow: Workflow, outcome: Omit<OutcomeRow, 'epoch'>): void {
  if (workflow.outcome !== null) throw new TypeError(`Workflow ${workflow.workflowId} has an outcome already.`);
  workflow.outcome = { ...outcome, epoch: workflow.epoch };
  workflow.status = outcome.status;
  workflow.completedAt = db.now();
  wakeWaiters(db, workflow.workflowId);
}
