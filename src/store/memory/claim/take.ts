import type { ClaimedWorkflow, RecordedStep } from '../../store.js';
import { end } from '../complete.js';
import { endOwnership, newOwnership } from '../start.js';
import { raiseVersion } from '../record-result.js';
import type { Workflow } from '../tables.js';
import type { Claim } from './claim.js';

/** Gives what a claim has picked to its executor, or ends it, its attempts used up. */
export function takeAll(claim: Claim): ClaimedWorkflow[] {
  const { db, recovered, due, picked } = claim;
  for (const workflow of recovered) endOwnership(workflow, db.now(), 'taken over', null);
  for (const { workflowId } of due) db.waits.delete(workflowId);
  const isUsedUp = ({ attempts, maxAttempts }: Workflow): boolean => attempts >= maxAttempts;
  const found = [...recovered, ...due, ...picked];
  const taken = found.filter((workflow) => !isUsedUp(workflow));
  for (const workflow of found.filter(isUsedUp)) bury(claim, workflow);
  const answers = taken.map((workflow) => take(claim, workflow));
  forgetStarts(claim, taken);
  return answers;
}

function bury({ db, request }: Claim, workflow: Workflow): void {
  raiseVersion(db, workflow);
  workflow.ownerToken = null;
  workflow.wakeAt = null;
  end(db, workflow, { status: 'DEAD_LETTER', output: null, error: request.deadLetterError, nonce: db.newToken() });
  workflow.attention = 'DEAD_LETTER';
  workflow.attentionDetail = `${String(workflow.attempts)} of ${String(workflow.maxAttempts)} attempts used`;
}

function take(claim: Claim, workflow: Workflow): ClaimedWorkflow {
  const { db, request, due } = claim;
  const { executorId, incarnation } = request.executor;
  const now = db.now();
  const token = db.newToken();
  raiseVersion(db, workflow);
  workflow.status = 'PENDING';
  workflow.ownerToken = token;
  workflow.epoch += 1;
  workflow.attempts += 1;
  workflow.executorId = executorId;
  workflow.incarnation = incarnation;
  workflow.appVersion = request.appVersion;
  workflow.anyVersion = false;
  workflow.attention = null;
  workflow.attentionDetail = null;
  workflow.wakeAt = null;
  workflow.startedAt ??= now;
  workflow.deadline ??= workflow.timeoutMs === null ? null : now + workflow.timeoutMs;
  const reason = reasonOf(claim, workflow);
  workflow.ownerships.push(newOwnership({ epoch: workflow.epoch, executorId, incarnation, reason, ownedAt: now }));
  if (isRated(claim, workflow.queue) && !due.includes(workflow)) {
    db.queueStarts.push({ queue: workflow.queue ?? '', partitionKey: workflow.partitionKey, startedAt: now });
  }
  return claimed(claim, workflow, { token, reason });
}

function reasonOf({ db, recovered, due }: Claim, workflow: Workflow): ClaimedWorkflow['reason'] {
  if (recovered.includes(workflow)) return 'recovered';
  if (workflow.attempts !== 1 || workflow.epoch === 1 || due.includes(workflow)) return 'claimed';
  // With a fresh budget: by the control operation that came after the last ownership, or by continuing as new.
  const lastOwned = workflow.ownerships.at(-1)?.ownedAt ?? Infinity;
  const acts = db.audit.get(workflow.workflowId) ?? [];
  const isResumed = acts.some(({ verb, actedAt }) => (verb === 'resume' || verb === 'rewind') && actedAt >= lastOwned);
  return isResumed ? 'resumed' : 'claimed';
}

function claimed(
  { db }: Claim,
  workflow: Workflow,
  { token, reason }: { readonly token: string; readonly reason: ClaimedWorkflow['reason'] },
): ClaimedWorkflow {
  const { workflowId, epoch, recordVersion, deadline, schedule } = workflow;
  return {
    ownership: { workflowId, token, epoch, recordVersion },
    name: workflow.name,
    instance: workflow.instance,
    attempts: workflow.attempts,
    reason,
    deadlineInMs: deadline === null ? null : deadline - db.now(),
    input: workflow.input.text,
    firstSeq: workflow.firstSeq,
    history: historyOf(workflow, db.now()),
    schedule: schedule === null ? undefined : { name: schedule.name, scheduledAt: new Date(schedule.scheduledAt) },
  };
}

/** Everything recorded, in the order in which it was recorded; see load_history. */
function historyOf({ results, intents }: Workflow, now: number): RecordedStep[] {
  const complete = [...results.values()].map((row) => ({
    seq: row.seq,
    name: row.name,
    kind: row.kind,
    complete: true,
    output: row.output,
    error: row.error,
    attempts: row.attempts,
    childId: row.childId,
    remainingMs: null,
    recordVersion: row.recordVersion,
  }));
  const open = [...intents.values()]
    .filter(({ seq }) => !results.has(seq))
    .map((row) => ({
      seq: row.seq,
      name: row.name,
      kind: row.kind,
      complete: false,
      output: null,
      error: null,
      attempts: row.attempts,
      childId: row.childId,
      remainingMs: row.wakeAt === null ? null : row.wakeAt - now,
      recordVersion: row.recordVersion,
    }));
  return [...complete, ...open].sort((one, other) => one.recordVersion - other.recordVersion);
}

function isRated({ db }: Claim, queue: string | null): boolean {
  const definition = queue === null ? undefined : db.queues.get(queue);
  return definition !== undefined && (definition.rateLimit !== null || definition.keyRateLimit !== null);
}

/** Claims from the queues of these workflows that no rate limit counts any more. */
function forgetStarts(claim: Claim, taken: readonly Workflow[]): void {
  const { db } = claim;
  const queues = new Set(taken.map(({ queue }) => queue).filter((queue) => isRated(claim, queue)));
  db.queueStarts = db.queueStarts.filter(({ queue, startedAt }) => {
    const definition = queues.has(queue) ? db.queues.get(queue) : undefined;
    if (definition === undefined) return true;
    const periodMs = Math.max(definition.rateLimit?.periodMs ?? 0, definition.keyRateLimit?.periodMs ?? 0);
    return startedAt > db.now() - periodMs;
  });
}
