import { randomUUID } from 'node:crypto';
import type { Runtime } from './runtime.js';
import { uuidV7 } from './uuid-v7.js';

/** The longest delay that a Node.js timer takes; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What Node.js gives. */
export const systemRuntime: Runtime = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  startTimer,
  nextTurn: (callback) => {
    setImmediate(callback);
  },
  random: () => Math.random(),
  randomUuid: () => randomUUID(),
  sortableUuid: () => uuidV7(),
};

function startTimer(delayMs: number, callback: () => void): () => void {
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
