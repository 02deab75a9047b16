import { randomUUID } from 'node:crypto';
import type { Driver } from '../../drivers/driver.js';
import type { MessageStore, OutsideMessage, SendAnswer } from '../message-store.js';
import type { StatementRunner } from '../queue-store.js';
import { RequestWriter } from './request-writer.js';
import { sendAnswersOf, sendStatement, type IdentifiedMessage, type SendRefusalRow } from './send-statement.js';

export interface PostgresMessageStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
  /** Tells other processes that a workflow may have got a message. */
  readonly announce: (workflowId: string) => void;
}

/** The message store on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresMessageStore implements MessageStore {
  readonly #schema: string;
  readonly #announce: (workflowId: string) => void;
  readonly #writer: RequestWriter<IdentifiedMessage, SendAnswer, SendRefusalRow>;

  constructor({ driver, schema, announce }: PostgresMessageStoreOptions) {
    this.#schema = schema;
    this.#announce = announce;
    this.#writer = new RequestWriter(driver, sendStatement(schema));
  }

  send(messages: readonly OutsideMessage[]): Promise<readonly SendAnswer[]> {
    return Promise.all(
      messages.map(async (message) => {
        const answer = await this.#writer.submit(identified(message));
        if (answer.kind === 'sent') this.#announce(message.workflowId);
        return answer;
      }),
    );
  }

  async sendIn(transaction: StatementRunner, messages: readonly OutsideMessage[]): Promise<readonly SendAnswer[]> {
    const text = `SELECT item, answer, found_status AS status FROM "${this.#schema}".send_in_transaction($1::text::json)`;
    const sent = messages.map(identified);
    return sendAnswersOf(sent, (await transaction(text, JSON.stringify(sent))) as readonly SendRefusalRow[]);
  }

  close(): void {
    this.#writer.close();
  }
}

function identified({ idempotencyKey, ...message }: OutsideMessage): IdentifiedMessage {
  return { ...message, messageId: idempotencyKey ?? randomUUID() };
}
