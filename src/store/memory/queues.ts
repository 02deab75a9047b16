import type { CountedQueue, QueueDeletion, QueueRecord, StoredQueue } from '../queue-store.js';
import { compareBytes } from './byte-order.js';
import type { MemoryDatabase } from './memory-database.js';
import type { QueueRow } from './tables.js';

/** See define_queues. */
export function defineQueues(db: MemoryDatabase, queues: readonly QueueRecord[], isDeclaration: boolean): void {
  const now = db.now();
  let changed = false;
  for (const queue of queues) {
    const known = db.queues.get(queue.name);
    const declaration = isDeclaration ? declarationOf(queue) : null;
    if (isDeclaration && known?.declared === declaration) continue;
    changed = true;
    db.queues.set(queue.name, {
      ...limitsOf(queue),
      name: queue.name,
      paused: known?.paused ?? false,
      declared: declaration ?? known?.declared ?? null,
      createdAt: known?.createdAt ?? now,
      updatedAt: now,
    });
  }
  if (changed) db.notify({ topic: 'work' });
}

/** See update_queue. */
export function updateQueue(
  db: MemoryDatabase,
  name: string,
  changes: Partial<QueueRecord> & { readonly paused?: boolean },
): boolean {
  const queue = db.queues.get(name);
  if (queue === undefined) return false;
  db.queues.set(name, { ...queue, ...withoutUndefined(changes), name, updatedAt: db.now() });
  db.notify({ topic: 'work' });
  return true;
}

/** See delete_queue. */
export function deleteQueue(db: MemoryDatabase, name: string, release: boolean): QueueDeletion {
  const queue = db.queues.get(name);
  if (queue === undefined) return { kind: 'missing' };
  const { waiting, delayed, running, blocked } = counted(db, queue);
  const workflows = waiting + delayed + running + blocked;
  if (workflows > 0 && !release) return { kind: 'not-empty', workflows };
  db.queueStarts = db.queueStarts.filter((row) => row.queue !== name);
  db.queues.delete(name);
  if (workflows > 0) db.notify({ topic: 'work' });
  return { kind: 'done' };
}

/** See list_queues. */
export function listQueues(db: MemoryDatabase): QueueRow[] {
  return [...db.queues.values()].sort((one, other) => compareBytes(one.name, other.name));
}

export function stored(row: QueueRow): StoredQueue {
  const { name, paused, createdAt, updatedAt } = row;
  return { ...limitsOf(row), name, paused, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
}

export function counted(db: MemoryDatabase, row: QueueRow): CountedQueue {
  const workflows = [...db.workflows.values()].filter(({ queue }) => queue === row.name);
  const count = (...statuses: readonly string[]): number =>
    workflows.filter(({ status }) => statuses.includes(status)).length;
  return {
    ...stored(row),
    waiting: count('ENQUEUED'),
    delayed: count('DELAYED'),
    running: count('PENDING', 'SUSPENDED'),
    blocked: count('BLOCKED'),
  };
}

function limitsOf(queue: QueueRecord | QueueRow): Omit<QueueRecord, 'name'> {
  const { concurrency, executorConcurrency, keyConcurrency, rateLimit, keyRateLimit } = queue;
  return { concurrency, executorConcurrency, keyConcurrency, rateLimit, keyRateLimit };
}

function declarationOf(queue: QueueRecord): string {
  return JSON.stringify(limitsOf(queue));
}

function withoutUndefined<Changes extends object>(changes: Changes): Changes {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as Changes;
}
