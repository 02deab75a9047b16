import { LaunchTimeoutError } from './errors/usage-errors.js';
import { backoffMs, pause } from './store/postgres/backoff.js';

/** What a launch asks, for people who read that it got no answer. */
export interface LaunchQuestion {
  /** Begins a sentence, which goes on with "could not be reached". */
  readonly whom: string;
  /** What to check, as a sentence. */
  readonly remedy: string;
}

/** Holdfast's own database. */
export const THE_DATABASE: LaunchQuestion = {
  whom: 'The database',
  remedy: 'Check that it runs and that "database" is right.',
};

/** How long a launch waits for a database that cannot be reached: all of its parts together. */
export class LaunchDeadline {
  /** The caller's; fires when nobody wants the launch any more. */
  readonly signal: AbortSignal;
  readonly #ms: number;
  readonly #at: number;

  constructor(ms: number, signal: AbortSignal | undefined) {
    this.signal = signal ?? new AbortController().signal;
    this.#ms = ms;
    this.#at = performance.now() + ms;
  }

  /**
   * Asks again until there is an answer, or a failure that does not pass. What may hang, `ask` is to bound.
   * @throws LaunchTimeoutError with what the last try failed with, the reason of the caller's signal, and what does not pass.
   */
  async insist<Answer>(
    question: LaunchQuestion,
    ask: () => Promise<Answer>,
    passes: (error: unknown) => boolean,
  ): Promise<Answer> {
    let last: unknown;
    for (let attempt = 1; ; attempt++) {
      this.signal.throwIfAborted();
      try {
        return await ask();
      } catch (error) {
        if (error instanceof LaunchTimeoutError) throw this.#error(question, last);
        if (!passes(error)) throw error;
        last = error;
      }
      if (this.#left === 0) throw this.#error(question, last);
      await pause(Math.min(backoffMs(attempt), this.#left), this.signal);
    }
  }

  /**
   * Waits for what asks the database until there is an answer, but not longer than there is time.
   * @throws LaunchTimeoutError, and the reason of the caller's signal. The work goes on then: whoever calls ends it.
   */
  bound<Value>(work: Promise<Value>): Promise<Value> {
    return this.#race(work, () => this.#error(THE_DATABASE));
  }

  /**
   * Waits for what may take longer than the time, as it is not for the database that it waits.
   * @throws the reason of the caller's signal. The work goes on then: whoever calls ends it.
   */
  unlessAborted<Value>(work: Promise<Value>): Promise<Value> {
    return this.#race(work, undefined);
  }

  /** Milliseconds; at least 0. */
  get #left(): number {
    return Math.max(0, this.#at - performance.now());
  }

  /** @param cause what the last try failed with, if that is known */
  #error({ whom, remedy }: LaunchQuestion, cause?: unknown): LaunchTimeoutError {
    // For people who do not see the cause.
    const reason = cause instanceof Error ? ` ${cause.message}` : '';
    return new LaunchTimeoutError(`${whom} could not be reached within ${String(this.#ms)} ms. ${remedy}${reason}`, {
      cause,
    });
  }

  async #race<Value>(work: Promise<Value>, timeout: (() => Error) | undefined): Promise<Value> {
    let stop!: () => void;
    const over = new Promise<never>((_, reject) => {
      const timer =
        timeout &&
        setTimeout(() => {
          reject(timeout());
        }, this.#left);
      const abort = (): void => {
        // The reason is whatever the caller gave.
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
        reject(this.signal.reason);
      };
      if (this.signal.aborted) abort();
      this.signal.addEventListener('abort', abort);
      stop = () => {
        clearTimeout(timer);
        this.signal.removeEventListener('abort', abort);
      };
    });
    // What ends after the time is over is nobody's failure any more.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, over]);
    } finally {
      stop();
    }
  }
}
