import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_DELAY_MS = 50;
const LONGEST_DELAY_MS = 2_000;

/** How long to wait before try number `attempt` (from 1): doubling, capped, with half of it jittered. */
export function backoffMs(attempt: number): number {
  const full = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt - 1, 10));
  return full / 2 + Math.random() * (full / 2);
}

/** Waits; ends early, without throwing, when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) {
      throw error;
    }
  });
}
