import type { Duration } from './duration.js';

/** How often, and after which waits, a failed step is tried again. */
export interface RetryOptions {
  /** Attempts in all, the first one included. At least 1; at most 1,000. */
  readonly maxAttempts: number;
  /** Wait before the second attempt. Default 1 s. */
  readonly initialDelay?: Duration;
  /** `exponential` doubles the wait after each attempt; `fixed` keeps it. Default `exponential`. */
  readonly backoff?: 'exponential' | 'fixed';
  /** No wait is longer. Default 1 min. */
  readonly maxDelay?: Duration;
  /**
   * Draw each wait at random between half of it and all of it, so that steps which failed together do not come back
   * together ("equal jitter"). Default true.
   */
  readonly jitter?: boolean;
  /** Return false to stop at once; the error is then recorded as it is. Default: every error is worth another attempt. */
  readonly shouldRetry?: (error: unknown, attempt: number) => boolean;
}
