import { NonRetryableError, RetryableError, StepRetriesExhaustedError } from '../errors/step-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { EventToAdd } from '../store/event-to-add.js';
import { AttemptContext, type AttemptSurroundings } from './attempt-context.js';
import type { StepDefinition } from './definitions.js';
import { LONGEST_DURATION_MS } from './duration.js';
import type { RetryPolicy } from './retry-policy.js';
import type { RunningAttempt } from './running-attempt.js';
import { whatWasThrown } from './thrown.js';

/** What is run, and how often. */
export type StepAttempts = Pick<StepDefinition, 'name' | 'retries' | 'timeoutMs'>;

/** What a step came to, with what the record keeps about the way there. */
export type StepEnd =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      /** What the attempt that brought it has added to the outbox. */
      readonly events: readonly EventToAdd[];
      readonly attempts: number;
      readonly failures: readonly unknown[];
    }
  | {
      readonly kind: 'error';
      readonly error: unknown;
      readonly attempts: number;
      readonly failures: readonly unknown[];
    };

/** What the attempts need of the execution around them. */
export interface AttemptHost extends AttemptSurroundings {
  readonly isRunning: boolean;
  /** @throws OwnershipLostError unless this execution may start another body. */
  mayRunBody(): Promise<void> | undefined;
  runBody(attempt: RunningAttempt, run: AttemptRun): unknown;
  /** Whether another attempt cannot help, or would do harm, whatever the step's policy says. */
  isFinal?(error: unknown): boolean;
  /**
   * What became of an attempt that ended with an error which does not say so; undefined: the error does.
   * @throws when nobody knows: the execution is over.
   */
  whatHappened(error: unknown, attempt: number): Promise<Finding> | undefined;
}

/** One attempt, for who runs more than the step's body in it. */
export interface AttemptRun {
  /** Rejects when the step's `timeout` has passed. What it is given goes on running. */
  readonly limit: (running: unknown) => unknown;
  /** The errors of the attempts before this one. */
  readonly failures: readonly unknown[];
}

/** What has been found out about a run of a body whose outcome was unknown. */
export type Finding =
  | {
      readonly kind: 'happened';
      readonly value: unknown;
      /** What `reconcile` has added to the outbox with that answer. */
      readonly events: readonly EventToAdd[];
    }
  /** `error`: what the run failed with, by that. */
  | { readonly kind: 'did-not-happen'; readonly error: unknown };

/** Runs a step's body until it succeeds, its policy says stop, or the execution may no longer write. */
export async function runAttempts(definition: StepAttempts, seq: number, host: AttemptHost): Promise<StepEnd> {
  const { retries, timeoutMs } = definition;
  const failures: unknown[] = [];
  for (let attempt = 1; ; attempt++) {
    const permission = host.mayRunBody();
    if (permission !== undefined) await permission;
    const context = new AttemptContext(definition.name, seq, attempt, host);
    let error: unknown;
    try {
      const limit = (running: unknown): unknown =>
        timeoutMs === null ? running : context.within(running, timeoutMs, 'An attempt');
      const value = await host.runBody(context, { limit, failures });
      const taken = context.takeEvents();
      const events = taken instanceof Promise ? await taken : taken;
      return { kind: 'value', value, events, attempts: attempt, failures };
    } catch (thrown) {
      error = whatWasThrown(thrown);
    } finally {
      context.end();
    }
    const asked = host.isRunning ? host.whatHappened(error, attempt) : undefined;
    if (asked !== undefined) {
      const found = await asked;
      if (found.kind === 'happened') {
        // What that attempt has added is not known to be what it would have added: nothing is told that may be wrong.
        return {
          kind: 'value',
          value: found.value,
          events: found.events,
          attempts: attempt,
          failures: [...failures, error],
        };
      }
      ({ error } = found);
    }
    const last = attempt >= retries.maxAttempts;
    const isFinal = error instanceof NonRetryableError || host.isFinal?.(error) === true;
    if (last || !host.isRunning || isFinal || !worthRetrying(retries, error, attempt)) {
      return { kind: 'error', error: finalError(definition, error, failures, last), attempts: attempt, failures };
    }
    failures.push(error);
    await wait(retryDelayMs(retries, error, attempt, host.runtime), host);
  }
}

function worthRetrying(retries: RetryPolicy, error: unknown, attempt: number): boolean {
  try {
    return retries.shouldRetry?.(error, attempt) ?? true;
  } catch {
    // A predicate that fails has not asked for another attempt; the step's own error is the one to report.
    return false;
  }
}

function finalError(definition: StepAttempts, error: unknown, failures: readonly unknown[], last: boolean): unknown {
  if (!last || definition.retries.maxAttempts === 1) return error;
  const attempts = String(failures.length + 1);
  return new StepRetriesExhaustedError(
    `Step "${definition.name}" failed ${attempts} times; "errors" holds the error of each attempt.`,
    [...failures, error],
    { cause: error },
  );
}

/** How long to wait after failed attempt number `attempt`. */
export function retryDelayMs(
  retries: RetryPolicy,
  error: unknown,
  attempt: number,
  chance: Pick<Runtime, 'random'>,
): number {
  const asked = error instanceof RetryableError ? chosenDelayMs(error.afterMs) : undefined;
  if (asked !== undefined) return asked;
  const factor = retries.exponential ? 2 ** Math.min(attempt - 1, 52) : 1;
  const delay = Math.min(retries.maxDelayMs, retries.initialDelayMs * factor);
  return retries.jitter ? delay / 2 + chance.random() * (delay / 2) : delay;
}

/** What is no time (`Number` of a `Retry-After` that holds a date) chooses none: a timer of it would never end. */
function chosenDelayMs(afterMs: unknown): number | undefined {
  if (typeof afterMs !== 'number' || !Number.isFinite(afterMs)) return undefined;
  return Math.min(Math.max(afterMs, 0), LONGEST_DURATION_MS);
}

/** Waits; not longer than the execution may write. */
export function wait(ms: number, host: Pick<AttemptHost, 'runtime' | 'onGone'>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = host.runtime.startTimer(ms, () => {
      forget();
      resolve();
    });
    const forget = host.onGone(() => {
      cancel();
      resolve();
    });
  });
}
