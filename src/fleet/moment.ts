import type { Runtime } from '../runtime/runtime.js';

/** A point in time inside this process. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function thisMoment(runtime: Runtime): Moment {
  return { monotonicMs: runtime.now(), wallMs: runtime.wallNow() };
}

/**
 * Milliseconds since then, at least. The monotonic clock stands still while the machine is suspended (a closed laptop, a
 * paused virtual machine), so the wall clock is asked as well. Somebody may set that, which only makes the answer too
 * large: whoever asks has to be careful then, not wrong.
 */
export function elapsedMs(runtime: Runtime, since: Moment): number {
  return Math.max(runtime.now() - since.monotonicMs, runtime.wallNow() - since.wallMs);
}
