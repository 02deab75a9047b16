import type { Duration } from './duration.js';
import type { GetEventOptions, SendOptions } from './messages.js';
import type { ReadStreamOptions, StreamEntry } from './stream.js';

/** What can be asked of a workflow, from any process. */
export interface WorkflowHandle<Result> {
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
  cancel(options?: { readonly reason?: string }): Promise<void>;
  /** Sends it a message; see `holdfast.send`. */
  send(topic: string, message: unknown, options?: SendOptions): Promise<void>;
  /** The current value of an event of it; see `holdfast.getEvent`. */
  getEvent<Value = unknown>(
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  getEvent<Value = unknown>(key: string, options?: GetEventOptions): Promise<Value>;
}

/**
 * `ENQUEUED` waits to be claimed, `DELAYED` until a time, `PENDING` runs, `SUSPENDED` waits unloaded, `BLOCKED` waits for
 * a person or a deploy; the others are terminal.
 */
export type WorkflowStatus =
  'ENQUEUED' | 'DELAYED' | 'PENDING' | 'SUSPENDED' | 'BLOCKED' | 'SUCCESS' | 'ERROR' | 'CANCELLED' | 'DEAD_LETTER';
