import { randomUUID } from 'node:crypto';
import { InvalidArgumentError } from '../../errors/admin-errors.js';
import { ConnectionLostError } from '../../errors/database-errors.js';
import type {
  AddAnswer,
  ClaimedEvent,
  OutboxStore,
  OutsideEvent,
  SettleAnswer,
  Settlement,
  TopicLimit,
} from '../outbox-store.js';
import { DIRECT_LINK, LostReplyError } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import type { MemoryStoreOptions } from './memory-store.js';
import { addEvent, claimEvents, settleEvent } from './outbox.js';

/** The outbox in memory. */
export class MemoryOutboxStore implements OutboxStore {
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
  }

  async add(event: OutsideEvent): Promise<AddAnswer> {
    const answer = await this.#calls.ask(() => addEvent(this.#db, event));
    if (answer.kind === 'added') this.#db.notify({ topic: 'outbox' });
    return answer;
  }

  addIn(): Promise<never> {
    return Promise.reject(new InvalidArgumentError('The store in memory has no SQL transactions: add outside of one.'));
  }

  async claim(topics: readonly TopicLimit[], leaseMs: number): Promise<readonly ClaimedEvent[]> {
    try {
      return await this.#calls.once(() => claimEvents(this.#db, topics, leaseMs));
    } catch (error) {
      if (!(error instanceof LostReplyError)) throw error;
      throw new ConnectionLostError('No reply came: what was taken is due again after its lease.', { cause: error });
    }
  }

  settle(settlement: Settlement): Promise<SettleAnswer> {
    return this.#calls.ask(() => settleEvent(this.#db, settlement));
  }

  close(): void {
    void this.#calls.close(0);
  }
}
