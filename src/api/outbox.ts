import type { CallersTransaction } from './queue.js';
import type { Duration } from './duration.js';
import type { RetryOptions } from './retry-options.js';

/** What `outbox.add` takes inside a workflow. */
export interface OutboxAddOptions {
  /**
   * Events of one topic and key are delivered one after the other, in the order in which they were added. 1 to 512 bytes.
   * Default: none, and so no order.
   */
  readonly key?: string;
}

/** What `holdfast.outbox.add` takes. */
export interface OutsideOutboxAddOptions extends OutboxAddOptions {
  /**
   * Your own open transaction, in the database of Holdfast: a client of `pg`, or what `sql.begin` of `postgres` passes. The
   * event is there exactly if it commits. Not inside a workflow.
   */
  readonly transaction?: CallersTransaction;
}

export interface OutboxOperations {
  /**
   * Adds an event from wherever this is called. When it returns, the event is on record (with `transaction`: once that commits) and
   * will be delivered as long as some executor has a handler for its topic. Inside a workflow it is `outbox.add`.
   *
   * @param topic 1 to 255 bytes.
   * @throws InvalidArgumentError, ValueNotSerializableError, PayloadTooLargeError (more than 1 MiB), before anything is written.
   */
  add(topic: string, payload: unknown, options?: OutsideOutboxAddOptions): Promise<void>;
}

/** An event as it is given to a handler. */
export interface OutboxEvent<Payload = unknown> {
  /** A UUID; the same at every delivery: what a receiver tells a second delivery by. */
  readonly id: string;
  readonly topic: string;
  readonly key: string | null;
  readonly payload: Payload;
  /** The workflow that added it; null: it was added outside of workflows. */
  readonly workflowId: string | null;
  /** By the database's clock. */
  readonly addedAt: Date;
}

/** What a handler gets besides the event. */
export interface DeliveryContext {
  /** Fires when the time of this attempt is up, or the process shuts down. Pass it on. */
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
}

/**
 * Delivers an event: when it returns, or the promise that it returns resolves, the event is delivered and gone. It may be called
 * several times for one event. An error is a failed attempt; a `NonRetryableError` is the last one, and a `RetryableError` can choose when
 * the next one begins.
 */
export type OutboxHandler = (event: OutboxEvent, context: DeliveryContext) => unknown;

/** What `launch` takes as `outbox`. */
export interface OutboxSettings {
  /** By topic, which is compared as a whole. Events of other topics are left to executors that have a handler for them. */
  readonly handlers: Readonly<Record<string, OutboxHandler>>;
  /** Attempts until an event is dead. Default: 15 attempts, 1 s apart at first, doubling up to 5 min: about 40 minutes. */
  readonly retries?: RetryOptions;
  /** Longest time of one attempt. Its signal fires then, and whatever it still returns is discarded. Default 30 s, at most 1 h. */
  readonly timeout?: Duration;
  /** Deliveries of one topic under way in this process at the same time, 1 to 1,000. Default 8. */
  readonly concurrency?: number;
}

/** What `webhook` takes. */
export interface WebhookOptions {
  /** `http:` or `https:`, without user name and password: use `headers`. */
  readonly url: string | URL;
  /** Sent besides those of Holdfast. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Signs each request as Standard Webhooks describes (standardwebhooks.com): HMAC with SHA-256 over ID, time and body. A text that
   * begins with `whsec_` goes on in Base64; any other is taken as it is. At least 16 bytes. Default: no signature.
   */
  readonly secret?: string;
  /** How long the receiver has to answer. Default 10 s, at most 1 h; the `timeout` of the outbox ends an attempt as well. */
  readonly timeout?: Duration;
}
