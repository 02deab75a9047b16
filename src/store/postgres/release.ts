import type { SqlRow } from '../../drivers/driver.js';
import { CONFLICT_DELAYS_MS } from '../conflict-delays.js';
import type { Ownership, WriteAnswer } from '../store.js';
import { pause } from './backoff.js';

interface ReleaseRow extends SqlRow {
  readonly answer: string | null;
  readonly found_version: number | null;
  readonly found_detail: string | null;
}

/** How long to wait for a row that somebody else holds locked, in milliseconds. */
const LOCKED_DELAY_MS = 50;

/** Gives a workflow up, following the version where it moves under the same token. Apart from the writer: it is rare. */
export async function release(
  ownership: Ownership,
  send: (recordVersion: number) => Promise<readonly SqlRow[]>,
  /** Ends a wait between two tries; `send` says then that the store is closed. */
  closing: AbortSignal,
): Promise<WriteAnswer> {
  let conflicts = 0;
  for (;;) {
    const [row] = (await send(ownership.recordVersion)) as readonly ReleaseRow[];
    switch (row?.answer) {
      case null:
        ownership.recordVersion += 1;
        return { kind: 'written' };
      case 'missing':
        return { kind: 'missing' };
      case 'lost':
        return { kind: 'lost' };
      case 'conflict': {
        const delay = CONFLICT_DELAYS_MS[conflicts];
        if (delay === undefined) return { kind: 'conflict' };
        conflicts += 1;
        ownership.recordVersion = row.found_version ?? ownership.recordVersion;
        await pause(delay, closing);
        break;
      }
      default:
        await pause(LOCKED_DELAY_MS, closing);
    }
  }
}
