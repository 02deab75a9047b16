import { verdict, type Verdict } from '../support/verdict.js';
import type { SleeperOptions, SleeperReport } from './campaign.js';

const MEBIBYTE = 2 ** 20;

/** What sleepers may cost. */
export interface Bounds {
  readonly latenessMs: number;
  /** Of the resident set, of all sleepers together. */
  readonly growthBytes: number;
  readonly launchMs: number;
}

export const DEFAULT_BOUNDS: Bounds = { latenessMs: 1_000, growthBytes: 32 * MEBIBYTE, launchMs: 500 };

export function judgeSleepers(report: SleeperReport, options: SleeperOptions, bounds: Bounds): readonly Verdict[] {
  const { empty, full, afterwards, latenessMs, missing, twice } = report;
  const largest = latenessMs.at(-1) ?? Infinity;
  const growthBytes = full.memory.rssBytes - empty.memory.rssBytes;
  const launchGrowthMs = full.launchMs - empty.launchMs;
  return [
    verdict(
      'timers',
      [
        ...(missing > 0 ? [`${String(missing)} timers have not fired`] : []),
        ...(twice > 0 ? [`${String(twice)} timers have fired again`] : []),
        ...(largest > bounds.latenessMs ? [`one was ${fixed(largest)} ms late`] : []),
      ],
      `${String(latenessMs.length)} timers at ${String(options.rate)}/s, late by p50 ${fixed(rank(latenessMs, 0.5))} ms, ` +
        `p99 ${fixed(rank(latenessMs, 0.99))} ms, at most ${fixed(largest)} ms`,
    ),
    verdict(
      'memory',
      growthBytes > bounds.growthBytes ? [`it grew by ${mebibytes(growthBytes)}`] : [],
      `resident ${mebibytes(empty.memory.rssBytes)} without sleepers, ${mebibytes(full.memory.rssBytes)} with ` +
        `${String(options.count)}, ${mebibytes(afterwards.rssBytes)} after the timers; heap ` +
        `${mebibytes(empty.memory.heapBytes)}, ${mebibytes(full.memory.heapBytes)}, ${mebibytes(afterwards.heapBytes)}`,
    ),
    verdict(
      'launch',
      launchGrowthMs > bounds.launchMs ? [`it took ${fixed(launchGrowthMs)} ms more`] : [],
      `${fixed(empty.launchMs)} ms without sleepers, ${fixed(full.launchMs)} ms with them`,
    ),
  ];
}

/** By nearest rank. */
function rank(sorted: readonly number[], fraction: number): number {
  return sorted[Math.ceil(fraction * sorted.length) - 1] ?? Infinity;
}

function fixed(value: number): string {
  return value.toFixed(0);
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
