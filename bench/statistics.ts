import type { Latency } from './protocol.js';

/** Middle value and extremes. One run of a benchmark says little; how far its repetitions are apart says how much. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** `null` for no values at all. */
export function spreadOf(values: readonly number[]): Spread | null {
  const sorted = [...values].sort((a, b) => a - b);
  const min = sorted[0];
  const max = sorted.at(-1);
  if (min === undefined || max === undefined) return null;
  const upper = sorted[sorted.length >> 1] ?? max;
  const lower = sorted[(sorted.length - 1) >> 1] ?? min;
  return { median: (lower + upper) / 2, min, max };
}

/** Percentiles by nearest rank, so that each is a latency that a workflow really had. */
export function latencyOf(values: readonly number[]): Latency | null {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (fraction: number): number | undefined => sorted[Math.ceil(fraction * sorted.length) - 1];
  const p50 = rank(0.5);
  const p99 = rank(0.99);
  const max = sorted.at(-1);
  if (p50 === undefined || p99 === undefined || max === undefined) return null;
  return { p50, p99, max };
}
