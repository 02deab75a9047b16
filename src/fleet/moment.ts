/** A point in time inside this process. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function thisMoment(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/**
 * Milliseconds since then, at least. The monotonic clock stands still while the machine is suspended (a closed laptop, a
 * paused virtual machine), so the wall clock is asked as well. Somebody may set that, which only makes the answer too
 * large: whoever asks has to be careful then, not wrong.
 */
export function elapsedMs(since: Moment): number {
  return Math.max(performance.now() - since.monotonicMs, Date.now() - since.wallMs);
}
