import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import { backoffMs, pause } from './backoff.js';
import { isTransient } from './transient-errors.js';

/** How long a call about queues or schedules is tried again before it is given up, in milliseconds. */
const RETRY_FOR_MS = 60_000;

/**
 * Runs a statement that may safely happen twice, until the database answers. `onFailure` is called for each try of which it is
 * not known whether it took effect.
 */
export async function askAgain<Row extends SqlRow>(
  driver: Driver,
  closing: AbortSignal,
  text: string,
  parameters: readonly SqlParameter[],
  onFailure?: () => void,
): Promise<readonly Row[]> {
  const giveUpAt = performance.now() + RETRY_FOR_MS;
  for (let attempt = 1; ; attempt++) {
    if (closing.aborted) throw new StoreClosedError('The store is closed.');
    try {
      return await driver.query<Row>(text, parameters);
    } catch (error) {
      if (!isTransient(error) || performance.now() >= giveUpAt) throw error;
      onFailure?.();
      await pause(backoffMs(attempt), closing);
    }
  }
}
