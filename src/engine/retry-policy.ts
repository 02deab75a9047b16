import type { RetryOptions } from '../api/retry-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { parseDuration } from './duration.js';
import { checkIsFunction, checkKnownOptions } from './known-options.js';
import { wholeNumber } from './whole-number.js';

const MOST_STEP_ATTEMPTS = 1_000;
const DEFAULT_INITIAL_DELAY_MS = 1_000;
const DEFAULT_MAX_DELAY_MS = 60_000;

export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialDelayMs: number;
  readonly exponential: boolean;
  readonly maxDelayMs: number;
  readonly jitter: boolean;
  readonly shouldRetry: RetryOptions['shouldRetry'];
}

const RETRY_OPTIONS: ReadonlySet<string> = new Set<keyof RetryOptions>([
  'maxAttempts',
  'initialDelay',
  'backoff',
  'maxDelay',
  'jitter',
  'shouldRetry',
]);

/** The policy of a step that was given none. */
export const ONE_ATTEMPT: RetryPolicy = {
  maxAttempts: 1,
  initialDelayMs: 0,
  exponential: false,
  maxDelayMs: 0,
  jitter: false,
  shouldRetry: undefined,
};

/** @throws InvalidArgumentError */
export function retryPolicy(options: RetryOptions | undefined, what = 'retries'): RetryPolicy {
  if (options === undefined) return ONE_ATTEMPT;
  checkKnownOptions(options, RETRY_OPTIONS, what);
  return policyOf(options, what);
}

/** @throws InvalidArgumentError. Options without bounds or waits have the defaults. */
export function policyOf(options: RetryOptions, what: string): RetryPolicy {
  const backoff: unknown = options.backoff ?? 'exponential';
  if (backoff !== 'exponential' && backoff !== 'fixed') {
    throw new InvalidArgumentError(`${what}.backoff is 'exponential' or 'fixed'.`);
  }
  if (typeof (options.jitter ?? true) !== 'boolean') {
    throw new InvalidArgumentError(`${what}.jitter is true or false.`);
  }
  if (options.shouldRetry !== undefined) checkIsFunction(options.shouldRetry, `${what}.shouldRetry`);
  return {
    maxAttempts: wholeNumber(options.maxAttempts, 1, MOST_STEP_ATTEMPTS, `${what}.maxAttempts`),
    initialDelayMs: parseDuration(options.initialDelay ?? DEFAULT_INITIAL_DELAY_MS, `${what}.initialDelay`),
    exponential: backoff === 'exponential',
    maxDelayMs: parseDuration(options.maxDelay ?? DEFAULT_MAX_DELAY_MS, `${what}.maxDelay`),
    jitter: options.jitter ?? true,
    shouldRetry: options.shouldRetry,
  };
}
