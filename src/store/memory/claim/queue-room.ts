import type { ExecutorIdentity } from '../../store.js';
import { isOwnedBy } from '../executors.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { QueueRow, QueueStartRow, Rate, Workflow } from '../tables.js';

/** How many more may be taken now; Infinity: no limit. */
export interface QueueRoom {
  /** Undefined: there is no such queue, and what is in it is not limited. */
  readonly definition: QueueRow | undefined;
  /** Until the queue's concurrency is reached. */
  readonly slots: number;
  /** Until this executor's is. */
  readonly own: number;
  /** Within the rate limit. */
  readonly rate: number;
  /** After how many milliseconds the rate limit lets something through again, if it lets nothing through now. */
  readonly freeInMs: number | null;
}

/** See queue_room. */
export function queueRoom(db: MemoryDatabase, queue: string, executor: ExecutorIdentity): QueueRoom {
  const definition = db.queues.get(queue);
  const held = holdersOf(db, queue);
  const starts = db.queueStarts.filter((row) => row.queue === queue);
  return {
    definition,
    slots: left(definition?.concurrency, held.length),
    own: left(definition?.executorConcurrency, held.filter((workflow) => isOwnedBy(workflow, executor)).length),
    ...rateRoom(db, definition?.rateLimit ?? null, starts, 0),
  };
}

/** How many more of one key of a queue may be taken; see key_room. */
export interface KeyRoom {
  readonly slots: number;
  readonly rate: number;
  readonly freeInMs: number | null;
}

/** Keys of what a claim has picked and not yet marked: those that need a slot, and those that have theirs. */
export interface Picked {
  readonly taken: readonly string[];
  readonly recovered: readonly string[];
}

export function keyRoom(db: MemoryDatabase, queue: QueueRow | undefined, key: string, picked: Picked): KeyRoom {
  if (queue === undefined || key === '') return { slots: Infinity, rate: Infinity, freeInMs: null };
  const taken = count(picked.taken, key);
  const held = holdersOf(db, queue.name).filter(({ partitionKey }) => partitionKey === key).length;
  const starts = db.queueStarts.filter((row) => row.queue === queue.name && row.partitionKey === key);
  return {
    slots: left(queue.keyConcurrency, held + taken),
    ...rateRoom(db, queue.keyRateLimit, starts, taken + count(picked.recovered, key)),
  };
}

/** A workflow that is running, or waits for something in the middle of running, holds a slot. */
function holdersOf(db: MemoryDatabase, queue: string): Workflow[] {
  return [...db.workflows.values()].filter(
    (workflow) => workflow.queue === queue && (workflow.status === 'PENDING' || workflow.status === 'SUSPENDED'),
  );
}

function rateRoom(
  db: MemoryDatabase,
  limit: Rate | null,
  starts: readonly QueueStartRow[],
  picked: number,
): { readonly rate: number; readonly freeInMs: number | null } {
  if (limit === null) return { rate: Infinity, freeInMs: null };
  const now = db.now();
  const counted = starts.filter(({ startedAt }) => startedAt > now - limit.periodMs).length;
  const rate = Math.max(0, limit.limit - picked - counted);
  // The start that makes room by leaving the window.
  const first =
    rate > 0 ? undefined : starts.toSorted((one, other) => other.startedAt - one.startedAt)[limit.limit - 1];
  const freeInMs = first === undefined ? null : Math.max(0, first.startedAt + limit.periodMs - now) + 1;
  return { rate, freeInMs };
}

function left(limit: number | null | undefined, used: number): number {
  return limit === null || limit === undefined ? Infinity : Math.max(0, limit - used);
}

function count(keys: readonly string[], key: string): number {
  return keys.filter((candidate) => candidate === key).length;
}
