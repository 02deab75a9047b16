import type { Duration } from './duration.js';
import type { CallersTransaction } from './queue.js';
import type { StandardSchema } from './standard-schema.js';

/** What `send` takes. */
export interface SendOptions {
  /**
   * Sends at most one message with this key to this workflow, however often it is called: what came first stays, whatever
   * it said. 1 to 512 bytes. Default: none.
   */
  readonly idempotencyKey?: string;
  /**
   * Your own open transaction, in the database of Holdfast: a client of `pg`, or what `sql.begin` of `postgres` passes. The
   * message is there exactly if it commits. Not inside a workflow.
   */
  readonly transaction?: CallersTransaction;
}

/** What `receive` takes. */
export interface ReceiveOptions<Message = unknown> {
  /**
   * How long to wait. When no message has come by then, the result is `undefined`. The end is fixed when the wait begins, by
   * the database's clock: a crash does not lengthen it. Default: as long as it takes.
   */
  readonly timeout?: Duration;
  /** Checked against the message; the workflow gets the schema's output. Default: the message is taken as it is. */
  readonly schema?: StandardSchema<unknown, Message>;
}

/** What `getEvent` takes. */
export interface GetEventOptions {
  /** How long to wait. When the event has not been set by then, the result is `undefined`. Default: as long as it takes. */
  readonly timeout?: Duration;
  /** Ends the wait early. Inside a workflow it has no meaning. */
  readonly signal?: AbortSignal;
}
