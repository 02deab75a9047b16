import type { MemoryDatabase } from '../memory-database.js';
import type { Workflow } from '../tables.js';
import { abandoned, askAgain, isAskedFor, leftOf, type Claim } from './claim.js';
import { keyRoom, queueRoom } from './queue-room.js';

/** Picks what dead executors own: what no limit concerns first, then queue by queue; see claim_work. */
export function recover(claim: Claim): void {
  const { db } = claim;
  const found = abandoned(claim);
  for (const workflow of found) {
    if (leftOf(claim) <= 0) break;
    if (!limitsRecovery(db, workflow) && isRecoverable(claim, workflow)) claim.recovered.push(workflow);
  }
  const queues = new Set(found.filter((workflow) => limitsRecovery(db, workflow)).map(({ queue }) => queue ?? ''));
  for (const queue of queues) recoverFromQueue(claim, queue, found);
}

/** See recover_from_queue. Their slots they have, so only the limits of this executor and of rates are asked. */
function recoverFromQueue(claim: Claim, queue: string, found: readonly Workflow[]): void {
  const { db, request } = claim;
  const room = queueRoom(db, queue, request.executor);
  let left = Math.min(leftOf(claim), room.own, room.rate);
  if (left === 0) {
    claim.isLimited = true;
    askAgain(claim, room.freeInMs);
  }
  const recovered: string[] = [];
  for (const workflow of found) {
    if (workflow.queue !== queue || !isRecoverable(claim, workflow)) continue;
    if (left === 0) {
      claim.isLimited = true;
      return;
    }
    const key = keyRoom(db, room.definition, workflow.partitionKey, { taken: [], recovered });
    if (key.rate === 0) {
      claim.isLimited = true;
      askAgain(claim, key.freeInMs);
      continue;
    }
    claim.recovered.push(workflow);
    recovered.push(workflow.partitionKey);
    left -= 1;
  }
}

function isRecoverable({ request }: Claim, workflow: Workflow): boolean {
  return (
    request.names.includes(workflow.name) && workflow.appVersion === request.appVersion && isAskedFor(request, workflow)
  );
}

function limitsRecovery(db: MemoryDatabase, { queue }: Workflow): boolean {
  const definition = queue === null ? undefined : db.queues.get(queue);
  if (definition === undefined) return false;
  const { executorConcurrency, rateLimit, keyRateLimit } = definition;
  return executorConcurrency !== null || rateLimit !== null || keyRateLimit !== null;
}
