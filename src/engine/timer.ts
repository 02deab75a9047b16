import type { Runtime } from '../runtime/runtime.js';

/** Resolves after that time, never before. */
export function sleep(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => {
    runtime.startTimer(ms, resolve);
  });
}

/** Resolves in a later round of the event loop. */
export function nextTurn(runtime: Runtime): Promise<void> {
  return new Promise((resolve) => {
    runtime.nextTurn(resolve);
  });
}

/** Waits for the work, but not longer than that. */
export async function within(runtime: Runtime, work: Promise<unknown>, ms: number): Promise<void> {
  let cancel!: () => void;
  const timeUp = new Promise<void>((resolve) => {
    cancel = runtime.startTimer(ms, resolve);
  });
  try {
    await Promise.race([work, timeUp]);
  } finally {
    cancel();
  }
}
