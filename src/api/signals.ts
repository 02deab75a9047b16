import type { Duration } from './duration.js';
import type { StandardSchema } from './standard-schema.js';

/** What `defineSignal` takes. */
export interface SignalOptions<Sent, Received> {
  /**
   * Checked before anything is sent, and again when it is received, where the workflow gets the schema's output. Default: the
   * value is taken as it is.
   */
  readonly schema?: StandardSchema<Sent, Received>;
}

/** A typed topic: what is sent under its name is one kind of value. */
export interface Signal<Sent, Received = Sent> extends SignalOptions<Sent, Received> {
  readonly kind: 'signal';
  /** The topic. `send(workflowId, signal.name, value)` is the same without the types and the check. */
  readonly name: string;
  /**
   * Inside a workflow: the longest waiting one, or the next one that comes; see `receive`.
   * @throws SchemaViolationError when one that was sent by name does not fit. It is received nevertheless.
   */
  receive(options: { readonly timeout: Duration }): Promise<Received | undefined>;
  receive(): Promise<Received>;
}

/** What `defineQuery` takes. */
export interface QueryDefinitionOptions {
  /** How long somebody who asks waits for the answer. Default 10 s. */
  readonly timeout?: Duration;
}

/** A question about a running workflow's state, in its own memory. */
export interface Query<Arguments extends unknown[], Result> {
  readonly kind: 'query';
  readonly name: string;
  /** Milliseconds. */
  readonly timeoutMs: number;
  /**
   * Inside a workflow: says how the question is answered, from now on and for this execution. The function only looks:
   * durable calls throw in it. Call it at the beginning of the workflow, so that it can be asked from then on.
   * @throws OutsideWorkflowError
   */
  handle(answer: (...args: Arguments) => Result | Promise<Result>): void;
}

/** What `defineUpdate` takes. */
export interface UpdateDefinitionOptions<Sent, Received> {
  /** Checked before anything is sent, and again in the workflow, where the handler gets the schema's output. */
  readonly input?: StandardSchema<Sent, Received>;
}

/** A change of a running workflow that is checked, carried out and acknowledged. */
export interface Update<Sent, Result, Received = Sent> extends UpdateDefinitionOptions<Sent, Received> {
  readonly kind: 'update';
  readonly name: string;
  /**
   * Inside a workflow: carries out updates of this name, one after the other, from now on until the workflow ends. The handler
   * may make durable calls; what it returns or throws is what `handle.update` returns or throws. Call it once.
   * @throws OutsideWorkflowError
   */
  handle(
    carryOut: (input: Received) => Result | Promise<Result>,
    options?: {
      /** Refuses an update by throwing: the handler does not run then. It only looks: durable calls throw in it. */
      readonly validate?: (input: Received) => void | Promise<void>;
    },
  ): void;
}

/** What `handle.update` takes. */
export interface UpdateOptions {
  /**
   * Carries the update out at most once for this workflow, however often it is asked for; who asks again gets the same
   * answer. Updates of different names do not share their IDs. 1 to 200 bytes. Default: a random one.
   */
  readonly updateId?: string;
  /** How long to wait for the answer. Default: as long as it takes. */
  readonly timeout?: Duration;
  /** Ends the wait early. The update stays sent. */
  readonly signal?: AbortSignal;
}
