import type { Duration } from './duration.js';
import type { RetryOptions } from './retry-options.js';

/**
 * What `reconcile` says of a run of a step's body whose outcome is unknown: the process died in it, it took too long, or it
 * threw {@link OutcomeUnknownError}.
 *
 * - `happened`: the effect is there. `result` becomes the step's recorded result, and the body is not run.
 * - `didNotHappen`: the effect is not there **and will not come any more**. Say this only when a request that is still on its way
 *   can no longer succeed; a "not found" right after a timeout is `stillUnknown`.
 * - `stillUnknown`: ask again later.
 */
export type Reconciliation<Result = unknown> =
  | { readonly happened: true; readonly result: Result }
  | { readonly didNotHappen: true }
  | { readonly stillUnknown: true };

/**
 * Asks the outside world what became of a step. It gets the arguments of the step; `step()` inside it has the step's own
 * idempotency key, a signal, and as `attempt` how often it has been asked. It must only look: it may be called at any time, and
 * as often as it takes.
 */
export type ReconcileFunction<Arguments extends readonly unknown[] = never, Result = unknown> = (
  ...args: Arguments
) => Promise<Reconciliation<Result>>;

/** What the option `reconcile` can be: the name of a method of the same class, or a function. */
export type ReconcileOption = string | ReconcileFunction;

/** How often, and after which waits, `reconcile` is asked again that does not know, fails, or takes too long. */
export interface ReconcileRetries extends Omit<RetryOptions, 'maxAttempts' | 'shouldRetry'> {
  /** Questions in all, the first one included; 1 to 1,000. Default 10. The workflow is `BLOCKED` after the last one. */
  readonly maxAttempts?: number;
}

/** What `@Step` and `runStep` take for effects that must not be repeated blindly. */
export interface UnknownOutcomeOptions<Reconcile extends ReconcileOption | undefined> {
  /**
   * Asked before the body is run again, or given up, when the outcome of an earlier run is unknown. Its presence has the intent
   * recorded before the body: one write more for each call of the step.
   */
  readonly reconcile?: Reconcile;
  /** Default: 10 questions, the second after 1 s, then doubled, up to 1 min: about five minutes in all. */
  readonly reconcileRetries?: ReconcileRetries;
  /** Longest time of one question; its signal fires then. Default 30 s. */
  readonly reconcileTimeout?: Duration;
  /**
   * The body is never begun a second time, whatever happens: not by a retry, not by another process. An outcome that is unknown
   * is asked for with `reconcile`; without one the workflow is `BLOCKED`. Does not go with more than one of `retries`.
   * Default `false`.
   */
  readonly atMostOnce?: boolean;
}
