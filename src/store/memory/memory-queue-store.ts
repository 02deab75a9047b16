import { randomUUID } from 'node:crypto';
import { InvalidArgumentError } from '../../errors/admin-errors.js';
import type {
  CountedQueue,
  EnqueueAnswer,
  QueueDeletion,
  QueueRecord,
  QueueStore,
  StoredQueue,
} from '../queue-store.js';
import type { EnqueueRequest } from '../store.js';
import { clearDeduplication } from './deduplication.js';
import { enqueue } from './enqueue.js';
import { DIRECT_LINK } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import type { MemoryStoreOptions } from './memory-store.js';
import { counted, defineQueues, deleteQueue, listQueues, stored, updateQueue } from './queues.js';

/** The queue store in memory. */
export class MemoryQueueStore implements QueueStore {
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
  }

  async enqueue(requests: readonly EnqueueRequest[]): Promise<readonly EnqueueAnswer[]> {
    const nonced = requests.map((request) => ({ request, nonce: this.#calls.newNonce() }));
    const answers = await this.#calls.ask(() =>
      nonced.map(({ request, nonce }) => enqueue(this.#db, request, { nonce, parent: null })),
    );
    const isWork = answers.some(({ kind }, index) => kind === 'enqueued' && requests[index]?.delayMs === 0);
    if (isWork) this.#db.notify({ topic: 'work' });
    return answers;
  }

  enqueueIn(): Promise<never> {
    return Promise.reject(
      new InvalidArgumentError('The store in memory has no SQL transactions: enqueue outside of one.'),
    );
  }

  define(queues: readonly QueueRecord[], { isDeclaration }: { readonly isDeclaration: boolean }): Promise<void> {
    return this.#calls.ask(() => {
      defineQueues(this.#db, queues, isDeclaration);
    });
  }

  update(name: string, changes: Partial<QueueRecord> & { readonly paused?: boolean }): Promise<boolean> {
    return this.#calls.ask(() => updateQueue(this.#db, name, changes));
  }

  list(): Promise<readonly StoredQueue[]> {
    return this.#calls.ask(() => listQueues(this.#db).map(stored));
  }

  listCounted(): Promise<readonly CountedQueue[]> {
    return this.#calls.ask(() => listQueues(this.#db).map((row) => counted(this.#db, row)));
  }

  async delete(name: string, { release }: { readonly release: boolean }): Promise<QueueDeletion> {
    let tries = 0;
    const deletion = await this.#calls.ask(() => {
      tries += 1;
      return deleteQueue(this.#db, name, release);
    });
    // The try whose reply was lost has deleted it.
    return deletion.kind === 'missing' && tries > 1 ? { kind: 'done' } : deletion;
  }

  get(name: string): Promise<CountedQueue | null> {
    return this.#calls.ask(() => {
      const row = this.#db.queues.get(name);
      return row === undefined ? null : counted(this.#db, row);
    });
  }

  clearDeduplication(limit: number): Promise<void> {
    return this.#calls.ask(() => {
      clearDeduplication(this.#db, limit);
    });
  }

  close(): void {
    void this.#calls.close(0);
  }
}
