import type { SendOptions } from '../api/messages.js';
import type { StandardSchema } from '../api/standard-schema.js';
import { checkSchema } from '../engine/schema.js';
import { sendRefusalError } from '../engine/send-refusal.js';
import type { Serializer } from '../engine/serializer.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { MessageStore, OutsideMessage } from '../store/message-store.js';
import { runnerOf } from './callers-transaction.js';

export interface MessengerParts {
  readonly store: MessageStore;
  readonly serializer: Serializer;
  /** Somebody in this process may wait for it. */
  readonly onSent: (workflowId: string) => void;
}

/** Sends messages from outside of workflows. */
export class Messenger {
  readonly #parts: MessengerParts;

  constructor(parts: MessengerParts) {
    this.#parts = parts;
  }

  /** What does not fit the schema is refused. */
  async send(
    workflowId: string,
    topic: string,
    message: unknown,
    options: SendOptions,
    schema?: StandardSchema,
  ): Promise<void> {
    const run = options.transaction === undefined ? undefined : runnerOf(options.transaction);
    if (schema !== undefined) await checkSchema(schema, message, `message of topic "${topic}"`);
    const { store, serializer, onSent } = this.#parts;
    const encoded = serializer.encode(message);
    const sent: OutsideMessage = {
      workflowId,
      idempotencyKey: options.idempotencyKey ?? null,
      topic,
      payload: typeof encoded === 'string' ? encoded : await encoded,
    };
    const [answer] = await (run === undefined ? store.send([sent]) : store.sendIn(run, [sent]));
    switch (answer?.kind) {
      case 'sent':
        if (run === undefined) onSent(workflowId);
        break;
      case 'no-receiver':
      case 'receiver-ended':
        throw sendRefusalError(workflowId, answer);
      case 'refused':
        throw new WriteRefusedError(`The database refuses the message to workflow "${workflowId}".`, {
          cause: answer.error,
        });
      case undefined:
        throw new TypeError('The store did not answer.');
    }
  }
}
