import type { Runtime } from '../runtime/runtime.js';

/** What the column of the record holds: 24 days. */
const LONGEST_ELAPSED_MS = 2 ** 31 - 1;

/** Whole milliseconds since a moment of the monotonic clock, as the record keeps them. */
export function elapsedSince(runtime: Runtime, startedAt: number): number {
  return Math.min(Math.round(runtime.now() - startedAt), LONGEST_ELAPSED_MS);
}
