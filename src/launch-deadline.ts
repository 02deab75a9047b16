import { LaunchTimeoutError } from './errors/usage-errors.js';

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

  /** Milliseconds; at least 0. */
  get left(): number {
    return Math.max(0, this.#at - performance.now());
  }

  /** @param cause what the last try failed with, if that is known */
  error(cause?: unknown): LaunchTimeoutError {
    // For people who do not see the cause.
    const reason = cause instanceof Error ? ` ${cause.message}` : '';
    return new LaunchTimeoutError(
      `The database could not be reached within ${String(this.#ms)} ms. Check that it runs and that "database" is right.${reason}`,
      { cause },
    );
  }

  /**
   * Waits for what asks the database until there is an answer, but not longer than that.
   * @throws LaunchTimeoutError, and the reason of the caller's signal. The work goes on then: whoever calls ends it.
   */
  async bound<Value>(work: Promise<Value>): Promise<Value> {
    let stop!: () => void;
    const over = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => {
        reject(this.error());
      }, this.left);
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
