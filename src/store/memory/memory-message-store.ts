import { randomUUID } from 'node:crypto';
import { InvalidArgumentError } from '../../errors/admin-errors.js';
import type { MessageStore, OutsideMessage, SendAnswer } from '../message-store.js';
import { DIRECT_LINK } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import type { MemoryStoreOptions } from './memory-store.js';
import { sendMessage } from './messages.js';

/** The message store in memory. */
export class MemoryMessageStore implements MessageStore {
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
  }

  async send(messages: readonly OutsideMessage[]): Promise<readonly SendAnswer[]> {
    const identified = messages.map(({ idempotencyKey, ...message }) => ({
      ...message,
      messageId: idempotencyKey ?? this.#calls.newNonce(),
    }));
    const answers = await this.#calls.ask(() =>
      identified.map((message): SendAnswer => sendMessage(this.#db, message, null) ?? { kind: 'sent' }),
    );
    const reached = identified.filter((_, index) => answers[index]?.kind === 'sent');
    if (reached.length > 0) {
      this.#db.notify({ topic: 'message', workflowIds: reached.map(({ workflowId }) => workflowId) });
    }
    return answers;
  }

  sendIn(): Promise<never> {
    return Promise.reject(
      new InvalidArgumentError('The store in memory has no SQL transactions: send outside of one.'),
    );
  }

  close(): void {
    void this.#calls.close(0);
  }
}
