import type { MemoryDatabase } from '../memory-database.js';
import type { Workflow } from '../tables.js';
import { askAgain, isForClaimer, type Claim } from './claim.js';
import { keyRoom, queueRoom, type QueueRoom } from './queue-room.js';
import { inCircle, type KeyTurn } from './turns.js';

/** Keys that one claim looks at in one queue, whether they have room or not. */
const MOST_KEYS = 500;

/** One claim's pick from one queue. */
interface Pick {
  readonly claim: Claim;
  readonly queue: string;
  readonly room: QueueRoom;
  /** Keys of what this claim has recovered from the queue, and of what it has picked. */
  readonly recovered: readonly string[];
  readonly taken: string[];
  readonly workflows: Workflow[];
  left: number;
  served: string | null;
}

interface Picked {
  readonly workflows: readonly Workflow[];
  readonly turn: KeyTurn | undefined;
  /** The share was all that kept it back. */
  readonly hasMore: boolean;
}

/** Picks up to `share` workflows of one queue, within its limits; see pick_from_queue. */
export function pickFromQueue(claim: Claim, queue: string, share: number, turn: KeyTurn | undefined): Picked {
  const { db, request } = claim;
  const room = queueRoom(db, queue, request.executor);
  const nothing: Picked = { workflows: [], turn, hasMore: false };
  if (room.definition?.paused === true) return nothing;
  const recovered = claim.recovered.filter((workflow) => workflow.queue === queue);
  const due = claim.due.filter((workflow) => workflow.queue === queue);
  const left = Math.min(share, room.slots, room.rate - recovered.length, room.own - recovered.length - due.length);
  if (left <= 0) {
    claim.isLimited = true;
    askAgain(claim, room.freeInMs);
    return nothing;
  }
  const pick: Pick = {
    claim,
    queue,
    room,
    recovered: recovered.map(({ partitionKey }) => partitionKey),
    taken: [],
    workflows: [],
    left,
    served: turn?.key ?? null,
  };
  if (request.only !== undefined) {
    pickOnly(pick, request.only);
    return { ...nothing, workflows: pick.workflows };
  }
  const next = pickInTurns(pick, turn);
  return { workflows: pick.workflows, turn: next, hasMore: pick.workflows.length === share };
}

/** Out of turn. */
function pickOnly(pick: Pick, only: readonly string[]): void {
  const found = [...pick.claim.db.workflows.values()].filter(
    (workflow) =>
      only.includes(workflow.workflowId) && isWaiting(workflow, pick.queue) && isForClaimer(pick.claim, workflow),
  );
  for (const workflow of found.slice(0, pick.left)) {
    const { slots, rate } = roomOf(pick, workflow.partitionKey);
    if (Math.min(slots, rate) > 0) take(pick, [workflow], workflow.partitionKey);
  }
}

/** Priority by priority, the lowest number first; at one priority the keys take turns. Returns the turn for the next claim. */
function pickInTurns(pick: Pick, turn: KeyTurn | undefined): KeyTurn | undefined {
  const start = turn?.key ?? null;
  const priorities = prioritiesOf(pick.claim.db, pick.queue).filter(
    (priority) => priority >= (turn?.priority ?? -Infinity),
  );
  let looked = 0;
  for (const priority of priorities) {
    if (pick.left === 0) {
      pick.claim.isLimited = true;
      return { key: pick.served };
    }
    const from = turn?.from ?? null;
    const circle = circleOf(pick, priority, start, priority === turn?.priority ? from : null);
    const keys = circle.slice(0, MOST_KEYS - looked);
    looked += keys.length;
    serve(pick, priority, keys);
    if (pick.left === 0) pick.claim.isLimited = true;
    if (pick.left > 0 && keys.length < circle.length) {
      pick.claim.isLimited = true;
      pick.claim.isSoon = true;
      return { key: start, priority, from: keys.at(-1) ?? from };
    }
  }
  // What came in front of where this claim went on is for the next one, which begins at the beginning.
  if (turn?.priority !== undefined) pick.claim.isSoon = true;
  return { key: pick.served };
}

/** The keys that wait at one priority, from the one after the last served; or what a claim before has left of that circle. */
function circleOf({ claim, queue }: Pick, priority: number, start: string | null, from: string | null): string[] {
  const waiting = [...claim.db.workflows.values()].filter(
    (workflow) => isWaiting(workflow, queue) && workflow.priority === priority,
  );
  const circle = inCircle(
    waiting.map(({ partitionKey }) => partitionKey),
    start,
  );
  if (from === null) return circle;
  const rest = inCircle([...circle, from], start);
  return rest.slice(rest.indexOf(from) + 1);
}

/** Each key gets an equal share of the room; what it leaves of that goes to those that have more, in a further round. */
function serve(pick: Pick, priority: number, circle: readonly string[]): void {
  let keys = circle;
  while (keys.length > 0 && pick.left > 0) {
    const share = Math.max(1, Math.floor(pick.left / keys.length));
    const more: string[] = [];
    for (const key of keys) {
      if (pick.left === 0) break;
      const room = roomOf(pick, key);
      const most = Math.min(share, pick.left, room.slots, room.rate);
      if (most === 0) {
        pick.claim.isLimited = true;
        askAgain(pick.claim, room.freeInMs);
        continue;
      }
      const found = firstInLine(pick, priority, key, most);
      if (found.length === 0) continue;
      pick.served = key;
      take(pick, found, key);
      if (found.length === most) more.push(key);
    }
    keys = more;
  }
}

/** See first_in_line. */
function firstInLine({ claim, queue, workflows }: Pick, priority: number, key: string, most: number): Workflow[] {
  return [...claim.db.workflows.values()]
    .filter(
      (workflow) =>
        isWaiting(workflow, queue) &&
        workflow.priority === priority &&
        workflow.partitionKey === key &&
        isForClaimer(claim, workflow) &&
        !workflows.includes(workflow),
    )
    .sort((one, other) => (one.queuedAt ?? 0) - (other.queuedAt ?? 0))
    .slice(0, most);
}

function take(pick: Pick, found: readonly Workflow[], key: string): void {
  pick.workflows.push(...found);
  pick.taken.push(...found.map(() => key));
  pick.left -= found.length;
}

function roomOf({ claim, room, taken, recovered }: Pick, key: string): ReturnType<typeof keyRoom> {
  return keyRoom(claim.db, room.definition, key, { taken, recovered });
}

function prioritiesOf(db: MemoryDatabase, queue: string): number[] {
  const waiting = [...db.workflows.values()].filter((workflow) => isWaiting(workflow, queue));
  return [...new Set(waiting.map(({ priority }) => priority))].sort((one, other) => one - other);
}

function isWaiting(workflow: Workflow, queue: string): boolean {
  return workflow.status === 'ENQUEUED' && workflow.queue === queue;
}
