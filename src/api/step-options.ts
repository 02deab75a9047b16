import type { Duration } from './duration.js';
import type { ReconcileOption, UnknownOutcomeOptions } from './reconciliation.js';
import type { RetryOptions } from './retry-options.js';

/** What `@Step` and `runStep` take. `Reconcile`: the type of the option of that name. */
export interface StepOptions<
  Reconcile extends ReconcileOption | undefined = ReconcileOption,
> extends UnknownOutcomeOptions<Reconcile> {
  /** Name in the record and on replay. Default: the method's name. Give one where a bundler renames methods. */
  readonly name?: string;
  /** Default: one attempt. */
  readonly retries?: RetryOptions;
  /** Longest time of one attempt. Its signal fires then, and whatever it still returns is discarded. Default: none. */
  readonly timeout?: Duration;
}
