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
  /** Milliseconds until the next attempt; undefined: as the step's retry options say. */
  readonly afterMs: number | undefined;

  constructor(message: string, options: HoldfastErrorOptions & { readonly afterMs?: number } = {}) {
    super(message, options);
    this.afterMs = options.afterMs;
  }
}
