import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { ConnectionLostError } from '../../errors/database-errors.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import { backoffMs, pause } from './backoff.js';
import { isTransient } from './transient-errors.js';

/** How long a call from outside of workflows is tried again before it is given up, in milliseconds. */
const RETRY_FOR_MS = 60_000;

export interface AskAgainOptions {
  /** Name of the prepared statement. */
  readonly prepare?: string;
  /** How long to go on trying, in milliseconds; Infinity: until the store is closed. Default one minute. */
  readonly forMs?: number;
  /** Called for each try whose reply was lost: it is not known whether it took effect. */
  readonly onLost?: () => void;
}

/** Runs a statement that may safely happen twice, until the database answers. */
export async function askAgain<Row extends SqlRow>(
  driver: Driver,
  closing: AbortSignal,
  text: string,
  parameters: readonly SqlParameter[],
  { prepare, forMs = RETRY_FOR_MS, onLost }: AskAgainOptions = {},
): Promise<readonly Row[]> {
  const giveUpAt = performance.now() + forMs;
  for (let attempt = 1; ; attempt++) {
    if (closing.aborted) throw new StoreClosedError('The store is closed.');
    try {
      return await driver.query<Row>(text, parameters, prepare === undefined ? undefined : { prepare });
    } catch (error) {
      if (!isTransient(error) || performance.now() >= giveUpAt) throw error;
      // Every other failure says that nothing took effect.
      if (error instanceof ConnectionLostError) onLost?.();
      await pause(backoffMs(attempt), closing);
    }
  }
}
