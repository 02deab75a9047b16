import type { CompensateOption } from './compensation.js';
import type { Duration } from './duration.js';
import type { ReconcileOption, UnknownOutcomeOptions } from './reconciliation.js';
import type { RetryOptions } from './retry-options.js';

/** What `@Step` and `runStep` take. `Reconcile`, `Undo`: the types of the options `reconcile` and `compensate`. */
export interface StepOptions<
  Reconcile extends ReconcileOption | undefined = ReconcileOption,
  Undo extends CompensateOption | undefined = CompensateOption,
> extends UnknownOutcomeOptions<Reconcile> {
  /** Name in the record and on replay. Default: the method's name. Give one where a bundler renames methods. */
  readonly name?: string;
  /** Default: one attempt. */
  readonly retries?: RetryOptions;
  /** Longest time of one attempt. Its signal fires then, and whatever it still returns is discarded. Default: none. */
  readonly timeout?: Duration;
  /**
   * Undoes the step when its workflow fails, runs out of time, or is cancelled with `{ compensate: true }`: the name of a method of the
   * same class, a function, or `{ run, retries, timeout }`. Its presence has the intent recorded before the body: one write more
   * for each call of the step.
   */
  readonly compensate?: Undo;
}
