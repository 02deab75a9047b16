import type { Duration } from './duration.js';
import type { GetEventOptions, SendOptions } from './messages.js';
import type { Query, Signal, Update, UpdateOptions } from './signals.js';
import type { ReadStreamOptions, StreamEntry } from './stream.js';

/** What `handle.cancel` takes. */
export interface HandleCancelOptions {
  /** Why; at most 4,096 bytes. */
  readonly reason?: string;
  /** Undo first what was done. Default `false`. */
  readonly compensate?: boolean;
}

/** What can be asked of a workflow, from any process. */
export interface WorkflowHandle<Result = unknown> {
  readonly workflowId: string;
  /**
   * Waits for the workflow's recorded outcome and returns it, or throws the recorded error. Every handle of the
   * workflow, on whichever process, gets the same one. A workflow that is `BLOCKED` keeps its handles waiting.
   *
   * Inside a workflow it is a durable call: the outcome is recorded, and `signal` has no meaning.
   *
   * @throws WorkflowCancelledError, WorkflowTimeoutError, MaxAttemptsExceededError, WorkflowStuckError, or what the
   *   workflow threw.
   * @throws WorkflowNotFoundError when the workflow has been deleted.
   * @throws HoldfastClosedError when this Holdfast is closed first.
   */
  result(options?: { readonly signal?: AbortSignal }): Promise<Result>;
  /**
   * Asks the record. Not a durable call: inside a workflow it can differ from run to run.
   * @throws WorkflowNotFoundError, StoreClosedError
   */
  status(): Promise<WorkflowStatus>;
  /**
   * Reads a stream of the workflow: what is there, and what comes, until the stream is closed or the workflow has ended. Ended by
   * leaving the loop, or by `signal`. Nothing is asked of the database before the first entry is asked for. Not in workflows:
   * read it in a step.
   *
   * @throws InvalidArgumentError for key, `from`, or an option that does not exist; by the loop:
   * @throws WorkflowNotFoundError when there is no such workflow, or it is deleted.
   * @throws StreamRewrittenError when a rewind took back what this loop has got.
   * @throws HoldfastClosedError when this Holdfast is closed first.
   */
  readStream<Value = unknown>(key: string, options?: ReadStreamOptions): AsyncIterable<StreamEntry<Value>>;
  /** Cancels it; see `admin.cancel`. */
  cancel(options?: HandleCancelOptions): Promise<void>;
  /** Sends it a message; see `holdfast.send`. */
  send(topic: string, message: unknown, options?: SendOptions): Promise<void>;
  /** The current value of an event of it; see `holdfast.getEvent`. */
  getEvent<Value = unknown>(
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  getEvent<Value = unknown>(key: string, options?: GetEventOptions): Promise<Value>;
  /**
   * Sends it a signal: a message on the signal's topic, once the value has been found to fit.
   * @throws SchemaViolationError before anything is written, and what `send` throws.
   */
  signal<Sent>(signal: Signal<Sent, unknown>, value: Sent, options?: SendOptions): Promise<void>;
  /**
   * Asks it about its state, wherever it runs; one that is unloaded is loaded for it. Nothing of it is recorded, also not
   * inside a workflow, where the answer can differ from run to run: ask in a step.
   * @throws QueryTimeoutError, QueryNotHandledError, or what the handler throws.
   * @throws WorkflowNotFoundError when there is no such workflow, ReceiverEndedError when it has ended.
   */
  query<Arguments extends unknown[], Answer>(query: Query<Arguments, Answer>, ...args: Arguments): Promise<Answer>;
  /**
   * Has it carry out an update, and returns what its handler returns. Sent once, it is carried out once, whatever crashes.
   * Inside a workflow it is made of durable calls.
   * @throws UpdateRejectedError when the workflow refuses it; or what the handler throws.
   * @throws UpdateTimeoutError with the ID to ask again with.
   * @throws SchemaViolationError before anything is written.
   * @throws WorkflowNotFoundError when there is no such workflow, ReceiverEndedError when it has ended, or ends or continues
   *   as new without answering.
   */
  update<Sent, Answer, Received>(
    update: Update<Sent, Answer, Received>,
    input: Sent,
    options?: UpdateOptions,
  ): Promise<Answer>;
}

/**
 * `ENQUEUED` waits to be claimed, `DELAYED` until a time, `PENDING` runs, `SUSPENDED` waits unloaded, `BLOCKED` waits for
 * a person or a deploy; the others are terminal.
 */
export type WorkflowStatus =
  'ENQUEUED' | 'DELAYED' | 'PENDING' | 'SUSPENDED' | 'BLOCKED' | 'SUCCESS' | 'ERROR' | 'CANCELLED' | 'DEAD_LETTER';
