import type { StatementRunner } from './queue-store.js';
import type { Refused, SendRefusal } from './store.js';

/** Messages that are sent from outside of workflows. */
export interface MessageStore {
  /** Answers in the order of the messages. Tells the receivers' executors. */
  send(messages: readonly OutsideMessage[]): Promise<readonly SendAnswer[]>;
  /** The same inside a transaction of the caller's. Executors are told when it commits. */
  sendIn(transaction: StatementRunner, messages: readonly OutsideMessage[]): Promise<readonly SendAnswer[]>;
  close(): void;
}

export interface OutsideMessage {
  /** The receiver. */
  readonly workflowId: string;
  /** The idempotency key, or null. */
  readonly idempotencyKey: string | null;
  readonly topic: string;
  /** An encoded value. */
  readonly payload: string;
}

export type SendAnswer = { readonly kind: 'sent' } | SendRefusal | Refused;
