import type { CatchUpPolicy } from '../api/schedule.js';
import type { Ticks } from './ticks.js';

/** How late a tick may be fired without counting as missed, in milliseconds. */
export const IN_TIME_MS = 10_000;
/** Ticks fired in one transaction. */
export const FIRED_AT_ONCE = 100;
/** Missed ticks that are counted, of one gap: computing one takes 50 µs, and a year of seconds has 31 million. */
export const COUNTED_MISSES = 200;

export interface FiringPlan {
  /** Ticks to be fired, in their order. */
  readonly ticks: readonly number[];
  /** Ticks dropped as missed, as far as they were counted. */
  readonly missed: number;
  /** The tick that comes after all of these; due, where a batch has left some. */
  readonly next: number;
}

/**
 * What to do about a schedule whose next tick is due. In milliseconds since 1970; the clock is the database's.
 * @throws InvalidCronError
 */
export function planFiring(ticks: Ticks, dueMs: number, nowMs: number, catchUp: CatchUpPolicy): FiringPlan {
  const inTimeFrom = nowMs - IN_TIME_MS;
  if (catchUp === 'all' || dueMs >= inTimeFrom) return planAll(ticks, dueMs, nowMs, 0);

  const lastMissed = Math.max(dueMs, ticks.upTo(inTimeFrom - 1) ?? dueMs);
  const first = ticks.after(lastMissed);
  const missed = countMissed(ticks, dueMs, lastMissed);
  if (catchUp === 'none' || first <= nowMs) return planAll(ticks, first, nowMs, missed);
  return { ticks: [lastMissed], missed: missed - 1, next: first };
}

function planAll(ticks: Ticks, firstMs: number, nowMs: number, missed: number): FiringPlan {
  const due: number[] = [];
  let next = firstMs;
  for (; next <= nowMs && due.length < FIRED_AT_ONCE; next = ticks.after(next)) due.push(next);
  return { ticks: due, missed, next };
}

/** From the first to the last missed tick, both included. */
function countMissed(ticks: Ticks, firstMs: number, lastMs: number): number {
  let count = 1;
  for (let tick = firstMs; count < COUNTED_MISSES; count++) {
    tick = ticks.after(tick);
    if (tick > lastMs) break;
  }
  return count;
}
