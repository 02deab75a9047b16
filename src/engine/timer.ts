/** The longest delay that a Node.js timer takes; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `callback` once, never before `delayMs` have passed by the monotonic clock. Returns how to cancel it. */
export function startTimer(delayMs: number, callback: () => void): () => void {
  const due = performance.now() + delayMs;
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const left = due - performance.now();
    // A timer may fire a fraction of a millisecond early.
    if (left <= 0) callback();
    else timer = setTimeout(arm, Math.min(Math.ceil(left), LONGEST_TIMER_MS));
  };
  timer = setTimeout(arm, Math.min(Math.max(Math.ceil(delayMs), 0), LONGEST_TIMER_MS));
  return () => {
    clearTimeout(timer);
  };
}

/** Waits for the work, but not longer than that. */
export async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let cancel!: () => void;
  const timeUp = new Promise<void>((resolve) => {
    cancel = startTimer(ms, resolve);
  });
  try {
    await Promise.race([work, timeUp]);
  } finally {
    cancel();
  }
}
