import type { Compensate, CompensateOption } from '../api/compensation.js';
import type { AnyFunction } from './any-function.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';
import { retryPolicy, type RetryPolicy } from './retry-policy.js';
import { checkMethodOption } from './step-method.js';

/** What undoes a step, and how often it is tried. */
export interface CompensationPolicy {
  /** The function, or the name of a method of what the step is called on. */
  readonly source: string | AnyFunction;
  /** Undefined: the method's own, or the default. */
  readonly retries: RetryPolicy | undefined;
  readonly timeoutMs: number | undefined;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof Compensate>(['run', 'retries', 'timeout']);

/** @throws InvalidArgumentError */
export function compensationPolicy(option: CompensateOption | undefined): CompensationPolicy | undefined {
  if (option === undefined) return undefined;
  if (typeof option !== 'object') {
    return { source: checkMethodOption(option, 'compensate'), retries: undefined, timeoutMs: undefined };
  }
  checkKnownOptions(option, OPTIONS, 'compensate');
  const { run, retries, timeout } = option;
  return {
    source: checkMethodOption(run, 'compensate.run'),
    retries: retries === undefined ? undefined : retryPolicy(retries, 'compensate.retries'),
    timeoutMs: timeout === undefined ? undefined : parseDuration(timeout, 'compensate.timeout'),
  };
}
