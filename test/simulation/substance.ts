import type { Counts } from './violations.js';

/** What a simulation has to have met, at least once in so many runs: with less it shows nothing. */
const ONE_IN: Partial<Record<keyof Counts, number>> = {
  takeovers: 5,
  refusedWrites: 20,
  parked: 10,
  unheard: 10,
  suspended: 5,
  versionConflicts: 50,
  messages: 40,
  rewinds: 20,
  rollbacks: 20,
  timeouts: 20,
};

/** What there was too little of. */
export function missingSubstance(counts: Counts, runs: number): readonly string[] {
  return Object.entries(ONE_IN).flatMap(([name, oneIn]) => {
    const count = counts[name as keyof Counts];
    const least = Math.max(1, Math.floor(runs / oneIn));
    return count < least ? [`${name}: ${String(count)} in ${String(runs)} runs, less than ${String(least)}`] : [];
  });
}
