import type { SqlParameter, SqlRow } from '../../drivers/driver.js';
import type { SendAnswer } from '../message-store.js';
import type { RequestStatement } from './request-writer.js';

const TYPES = ['text[]', 'text[]', 'text[]', 'text[]'];

/** A message with its ID: the idempotency key, or a nonce by which a retry recognises its own earlier commit. */
export interface IdentifiedMessage {
  readonly workflowId: string;
  readonly messageId: string;
  readonly topic: string;
  readonly payload: string;
}

/** A row of what send_batch and send_in_transaction return, by whatever library it was read. */
export interface SendRefusalRow extends SqlRow {
  /** A text where the caller's client has parsers of its own. */
  readonly item: number | string;
  readonly answer: 'missing' | 'ended';
  /** Status of the receiver. */
  readonly status: string | null;
}

/** What is sent from outside of workflows, many at once. To one receiver, in the order of the calls. */
export function sendStatement(schema: string): RequestStatement<IdentifiedMessage, SendAnswer, SendRefusalRow> {
  const placeholders = TYPES.map((type, index) => `$${String(index + 1)}::${type}`).join(', ');
  return {
    name: 'holdfast_send_batch',
    text: `SELECT item, answer, found_status AS status FROM "${schema}".send_batch(${placeholders})`,
    columns: (messages): SqlParameter[] => [
      messages.map(({ workflowId }) => workflowId),
      messages.map(({ messageId }) => messageId),
      messages.map(({ topic }) => topic),
      messages.map(({ payload }) => payload),
    ],
    answers: sendAnswersOf,
    payloadBytes: ({ payload }) => Buffer.byteLength(payload),
    lineOf: ({ workflowId }) => workflowId,
  };
}

/** One answer a message, in their order. */
export function sendAnswersOf(
  messages: readonly IdentifiedMessage[],
  rows: readonly SendRefusalRow[],
): readonly SendAnswer[] {
  const answers = messages.map((): SendAnswer => ({ kind: 'sent' }));
  for (const { item, answer, status } of rows) {
    answers[Number(item) - 1] =
      answer === 'missing' ? { kind: 'no-receiver' } : { kind: 'receiver-ended', status: status ?? '' };
  }
  return answers;
}
