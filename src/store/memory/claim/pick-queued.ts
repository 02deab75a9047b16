import { askAgain, isAskedFor, leftOf, type Claim } from './claim.js';
import { pickFromQueue } from './pick-from-queue.js';
import { inCircle, parseTurns, type KeyTurn, type Turns } from './turns.js';

/** Queues that one claim looks at. */
const MOST_QUEUES = 100;
/** Queues whose turns are remembered. */
const MOST_TURNS = 1_000;

/** Serves the queues in turns; see claim_work. Returns the turns for the next claim; null: nothing waits in queues. */
export function pickQueued(claim: Claim): Turns | null {
  const { request } = claim;
  const before = parseTurns(request.turns);
  const queues = waitingQueues(claim, before.queue);
  const keys: Record<string, KeyTurn> = Object.keys(before.keys).length > MOST_TURNS ? {} : { ...before.keys };
  let last: string | undefined;
  let hasMore = false;
  for (const [place, queue] of queues.entries()) {
    const left = leftOf(claim);
    if (left <= 0) {
      claim.isLimited = true;
      break;
    }
    const picked = pickFromQueue(claim, queue, Math.ceil(left / (queues.length - place)), keys[queue]);
    claim.picked.push(...picked.workflows);
    hasMore ||= picked.hasMore;
    last = queue;
    if (picked.turn !== undefined) keys[queue] = picked.turn;
  }
  if (queues.length < MOST_QUEUES && last !== undefined && last === queues.at(-1)) {
    // All have had their turn: another one begins the next round.
    last = queues[0];
  } else if (leftOf(claim) > 0 && queues.length === MOST_QUEUES) {
    claim.isSoon = true;
  }
  // Some queues left more of their shares than others could use of them.
  if (hasMore && leftOf(claim) > 0) askAgain(claim, 0);
  return queues.length === 0 ? null : { queue: last ?? before.queue, keys };
}

function waitingQueues({ db, request }: Claim, after: string | null): string[] {
  const waiting = [...db.workflows.values()].filter(
    (workflow) => workflow.status === 'ENQUEUED' && isAskedFor(request, workflow),
  );
  const queues = waiting.flatMap(({ queue }) => (queue === null ? [] : [queue]));
  return inCircle(queues, request.only === undefined ? after : null).slice(0, MOST_QUEUES);
}
