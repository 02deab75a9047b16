import { compareBytes } from '../byte-order.js';
import type { MemoryDatabase } from '../memory-database.js';
import { raiseVersion } from '../record-result.js';
import type { Workflow } from '../tables.js';
import { isAskedFor, isForClaimer, leftOf, type Claim } from './claim.js';
import { queueRoom } from './queue-room.js';

/** How many workflows whose delay is over one claim puts into their lines. */
const MOST_PROMOTED = 1_000;

/** What is due in a queue gets in line. */
export function promote({ db, request }: Claim): void {
  const due = [...db.workflows.values()]
    .filter((workflow) => workflow.status === 'DELAYED' && workflow.queue !== null && isDue(db, workflow))
    .filter((workflow) => isAskedFor(request, workflow))
    .sort(byMoment);
  for (const workflow of due.slice(0, MOST_PROMOTED)) {
    workflow.status = 'ENQUEUED';
    workflow.wakeAt = null;
    raiseVersion(db, workflow);
  }
}

/**
 * Picks what is due. What is woken has its slot, but not in this executor: what that has no room for is left asleep, for
 * another one or for later, and what it lies in front of is looked for again.
 */
export function pickDue(claim: Claim): void {
  const { db } = claim;
  const full = new Set<string>();
  let overflows = true;
  while (overflows) {
    fill(claim, full);
    overflows = false;
    for (const queue of limitedQueues(claim)) {
      if (full.has(queue)) continue;
      const waking = claim.due.filter((workflow) => workflow.queue === queue);
      const { own } = queueRoom(db, queue, claim.request.executor);
      const room = Math.max(0, own - claim.recovered.filter((workflow) => workflow.queue === queue).length);
      if (waking.length <= room) continue;
      overflows = true;
      claim.isLimited = true;
      full.add(queue);
      for (const workflow of waking.slice(room)) claim.due.splice(claim.due.indexOf(workflow), 1);
    }
  }
}

/** Those that belong to no queue, and were not given back for later. */
export function pickUnqueued(claim: Claim): void {
  const found = [...claim.db.workflows.values()]
    .filter((workflow) => workflow.status === 'ENQUEUED' && workflow.queue === null && isForClaimer(claim, workflow))
    .sort((one, other) => one.createdAt - other.createdAt || compareBytes(one.workflowId, other.workflowId));
  claim.picked.push(...found.slice(0, Math.max(0, leftOf(claim))));
}

function fill(claim: Claim, full: ReadonlySet<string>): void {
  const found = [...claim.db.workflows.values()]
    .filter(
      (workflow) =>
        (workflow.status === 'SUSPENDED' || (workflow.status === 'DELAYED' && workflow.queue === null)) &&
        isDue(claim.db, workflow) &&
        (workflow.queue === null || !full.has(workflow.queue)) &&
        isForClaimer(claim, workflow) &&
        !claim.due.includes(workflow),
    )
    .sort(byMoment);
  claim.due.push(...found.slice(0, Math.max(0, leftOf(claim))));
}

function limitedQueues({ db, due }: Claim): Set<string> {
  const queues = new Set(due.flatMap(({ queue }) => (queue === null ? [] : [queue])));
  return new Set([...queues].filter((queue) => (db.queues.get(queue)?.executorConcurrency ?? null) !== null));
}

function isDue(db: MemoryDatabase, { wakeAt }: Workflow): boolean {
  return wakeAt !== null && wakeAt <= db.now();
}

function byMoment(one: Workflow, other: Workflow): number {
  return (one.wakeAt ?? 0) - (other.wakeAt ?? 0);
}
