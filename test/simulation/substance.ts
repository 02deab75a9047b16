import type { ScopeName } from './scenarios.js';
import type { Counts } from './violations.js';

type Least = Partial<Record<keyof Counts, number>>;

/** What a simulation has to have met, at least once in so many runs: with less it shows nothing. */
const ONE_IN: Readonly<Record<ScopeName, Least>> = {
  ordinary: {
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
  },
  small: {
    takeovers: 10,
    refusedWrites: 40,
    parked: 20,
    unheard: 60,
    suspended: 300,
    versionConflicts: 150,
    messages: 250,
    rewinds: 60,
    rollbacks: 30,
    timeouts: 30,
  },
};

/** What there was too little of. */
export function missingSubstance(scope: ScopeName, counts: Counts, runs: number): readonly string[] {
  return Object.entries(ONE_IN[scope]).flatMap(([name, oneIn]) => {
    const count = counts[name as keyof Counts];
    const least = Math.max(1, Math.floor(runs / oneIn));
    return count < least ? [`${name}: ${String(count)} in ${String(runs)} runs, less than ${String(least)}`] : [];
  });
}
