import type { Duration } from './duration.js';
import type { RetryOptions } from './retry-options.js';

/**
 * Undoes what a step has done. It gets the step's recorded result and the step's arguments. It is a durable step of its own: `step()`
 * inside it has an idempotency key of its own and a signal, and it is run at least once, until it succeeds or its retries are used
 * up. Other steps that it calls are plain calls.
 */
export type CompensateFunction<Arguments extends readonly unknown[] = never, Result = never> = (
  result: Result,
  ...args: Arguments
) => Promise<unknown>;

/** A compensation with its retries. */
export interface Compensate<Run extends string | CompensateFunction = string | CompensateFunction> {
  /** The name of a method of the same class, or a function. */
  readonly run: Run;
  /**
   * Default: those of the method, where it is a step that has some; else 10 attempts, the second after 1 s, then doubled, up to 1 min.
   * When they are used up the workflow is `BLOCKED`, with the attention code `COMPENSATION_FAILED`.
   */
  readonly retries?: RetryOptions;
  /** Longest time of one attempt. Default: that of the method, where it is a step; else none. */
  readonly timeout?: Duration;
}

/** What the option `compensate` can be. */
export type CompensateOption = string | CompensateFunction | Compensate;

/** What `onRollback` takes. */
export interface RollbackOptions {
  /** Name in the record, 1 to 255 bytes; the same at every run. Default `onRollback`. */
  readonly name?: string;
  /** As for a step's compensation. */
  readonly retries?: RetryOptions;
  /** As for a step's compensation. */
  readonly timeout?: Duration;
}
