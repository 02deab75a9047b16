import type { ReconcileOption, ReconcileRetries, UnknownOutcomeOptions } from '../api/reconciliation.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { AnyFunction } from './any-function.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';
import { policyOf, type RetryPolicy } from './retry-policy.js';
import { checkMethodOption } from './step-method.js';

const DEFAULT_QUESTIONS = 10;
const DEFAULT_RECONCILE_TIMEOUT_MS = 30_000;

/** Whom to ask for a step's outcome when it is unknown, and for how long. */
export interface ReconcilePolicy {
  /** The function, or the name of a method of what the step is called on. */
  readonly source: string | AnyFunction;
  readonly retries: RetryPolicy;
  readonly timeoutMs: number;
}

const RECONCILE_RETRY_OPTIONS: ReadonlySet<string> = new Set<keyof ReconcileRetries>([
  'maxAttempts',
  'initialDelay',
  'backoff',
  'maxDelay',
  'jitter',
]);

/** @throws InvalidArgumentError */
export function reconcilePolicy(
  options: UnknownOutcomeOptions<ReconcileOption | undefined>,
): ReconcilePolicy | undefined {
  const { reconcile, reconcileRetries = {}, reconcileTimeout = DEFAULT_RECONCILE_TIMEOUT_MS } = options;
  if (reconcile === undefined) {
    if (options.reconcileRetries === undefined && options.reconcileTimeout === undefined) return undefined;
    throw new InvalidArgumentError(
      '"reconcileRetries" and "reconcileTimeout" say how to ask "reconcile", which is not given.',
    );
  }
  checkKnownOptions(reconcileRetries, RECONCILE_RETRY_OPTIONS, 'reconcileRetries');
  return {
    source: checkMethodOption(reconcile, 'reconcile'),
    retries: policyOf(
      { ...reconcileRetries, maxAttempts: reconcileRetries.maxAttempts ?? DEFAULT_QUESTIONS },
      'reconcileRetries',
    ),
    timeoutMs: parseDuration(reconcileTimeout, 'reconcileTimeout'),
  };
}

/** @throws InvalidArgumentError for a step that is to run once and to be tried again. */
export function checkAtMostOnce(atMostOnce: unknown, { maxAttempts }: RetryPolicy): boolean {
  if (typeof atMostOnce !== 'boolean') throw new InvalidArgumentError('The option "atMostOnce" is true or false.');
  if (atMostOnce && maxAttempts > 1) {
    throw new InvalidArgumentError(
      'A step that is "atMostOnce" is not tried again: leave "retries" out, or "atMostOnce" and give it a "reconcile".',
    );
  }
  return atMostOnce;
}
