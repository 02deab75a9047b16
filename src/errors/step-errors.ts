import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** One attempt of a step took longer than its `timeout`. Retried like any other failure. */
export class StepTimeoutError extends HoldfastError {
  override readonly code = 'STEP_TIMEOUT';
  override readonly name = 'StepTimeoutError';
}

/** All attempts of a step failed. `cause` is the last attempt's error, `errors` are those of all attempts, in order. */
export class StepRetriesExhaustedError extends HoldfastError {
  override readonly code = 'STEP_RETRIES_EXHAUSTED';
  override readonly name = 'StepRetriesExhaustedError';
  readonly errors: readonly unknown[];

  constructor(message: string, errors: readonly unknown[], options?: HoldfastErrorOptions) {
    super(message, options);
    this.errors = errors;
  }
}

/** Throw it from a step body to fail the step at once, however many attempts are left. */
export class NonRetryableError extends HoldfastError {
  override readonly code: string = 'NON_RETRYABLE';
  override readonly name: string = 'NonRetryableError';
}

/** Throw it from a step body to choose when the next attempt begins. It does not add attempts. */
export class RetryableError extends HoldfastError {
  override readonly code: string = 'RETRYABLE';
  override readonly name: string = 'RetryableError';
  /** Milliseconds until the next attempt, from 0; undefined, or no finite number: as the step's retry options say. */
  readonly afterMs: number | undefined;

  constructor(message: string, options: HoldfastErrorOptions & { readonly afterMs?: number } = {}) {
    super(message, options);
    this.afterMs = options.afterMs;
  }
}

/**
 * Throw it from a step body that cannot tell whether its effect happened: a reply that did not come, an answer of no use. The body
 * is not run again before `reconcile`, or a person, has found out; a timeout is not a failure.
 */
export class OutcomeUnknownError extends HoldfastError {
  override readonly code: string = 'OUTCOME_UNKNOWN';
  override readonly name: string = 'OutcomeUnknownError';
}

/**
 * The outcome of a step's run was unknown, `reconcile` has found that its effect did not happen, and the step is not to be run
 * again: it is `atMostOnce`, or no attempts are left. `cause` is what the run had ended with, where that is known.
 */
export class StepDidNotHappenError extends HoldfastError {
  override readonly code = 'STEP_DID_NOT_HAPPEN';
  override readonly name = 'StepDidNotHappenError';
}

/** The `reconcile` of a step answered something that is no `Reconciliation`. The workflow is `BLOCKED`: nothing is guessed. */
export class InvalidReconciliationError extends HoldfastError {
  override readonly code = 'RECONCILIATION_INVALID';
  override readonly name = 'InvalidReconciliationError';
}

/**
 * continueAsNew was called while a step with `reconcile` or `atMostOnce` was under way: the history, and with it the intent of that
 * step, would be gone. The run goes on.
 */
export class StepUnderWayError extends HoldfastError {
  override readonly code = 'STEP_UNDER_WAY';
  override readonly name = 'StepUnderWayError';
}
