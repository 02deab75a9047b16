import type { SuspendAnswer, Wait } from '../store.js';
import { giveUp, refusedGivingUp, unspendAttempt } from './complete.js';
import { isLeftBehind, valueOf } from './events.js';
import type { MemoryDatabase } from './memory-database.js';
import { longestWaiting } from './messages.js';
import { owned, unwritten, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import type { Workflow } from './tables.js';

/** Unloads a workflow in which everything waits, unless something of that is there; see suspend_workflow. */
export function suspend(db: MemoryDatabase, check: OwnershipCheck, waits: readonly Wait[]): Tried<SuspendAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const tried = refusedGivingUp(db, check);
    if (tried.kind === 'moved') return tried;
    return tried.answer.kind === 'written'
      ? { ...tried, answer: { kind: 'suspended' } }
      : { ...tried, answer: tried.answer };
  }
  const wakeAt = earliestMoment(workflow);
  const isDue = waits.some((wait) => isThere(db, workflow, wait)) || (wakeAt !== null && wakeAt <= db.now());
  if (isDue || isAsked(db, workflow)) return unwritten({ kind: 'not-now' });

  const targets = new Set(waits.flatMap((wait) => ('workflowId' in wait ? [wait.workflowId] : [])));
  targets.delete(workflow.workflowId);
  if (targets.size > 0) db.waits.set(workflow.workflowId, targets);
  giveUp(db, workflow, check.nonce, 'suspended');
  unspendAttempt(workflow);
  workflow.status = 'SUSPENDED';
  workflow.wakeAt = wakeAt;
  workflow.attention = null;
  workflow.attentionDetail = null;
  return written({ kind: 'suspended' });
}

function isThere(db: MemoryDatabase, workflow: Workflow, wait: Wait): boolean {
  switch (wait.kind) {
    case 'timer':
      return false;
    case 'message':
      return longestWaiting(workflow, wait.topic) !== undefined;
    case 'outcome':
    case 'event': {
      const target = db.workflows.get(wait.workflowId);
      // One that is gone is something that its waiter has to hear of; and one that has ended sets no event any more.
      if (target?.outcome !== null) return true;
      return wait.kind === 'event' && (valueOf(target, wait.key) !== undefined || isLeftBehind(target, wait.key));
    }
  }
}

/** The earliest recorded moment that the workflow waits for, its deadline included. */
function earliestMoment(workflow: Workflow): number | null {
  const open = [...workflow.intents.values()].filter(({ seq }) => !workflow.results.has(seq));
  const moments = [workflow.deadline, ...open.map(({ wakeAt }) => wakeAt)].filter((moment) => moment !== null);
  return moments.length === 0 ? null : Math.min(...moments);
}

/** Whether somebody waits for an answer to a question about the workflow's state. */
function isAsked(db: MemoryDatabase, workflow: Workflow): boolean {
  return [...workflow.questions.values()].some(
    ({ reply, error, expiresAt }) => reply === null && error === null && expiresAt > db.now(),
  );
}
