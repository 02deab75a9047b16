import { beMutant } from './mutated-bundle.js';
import { MUTANTS, type Mutant } from './mutants.js';
import type { SimulateCommand } from './options.js';
import type { ScopeName } from './scenarios.js';
import { simulate } from './simulate.js';
import type { Judge } from './violations.js';

interface Search {
  readonly isFound: boolean;
  readonly schedules: number;
  readonly events: number;
  /** Judges that were red, also before one that has to be. */
  readonly red: ReadonlySet<Judge>;
}

/** Tries one mutant after the other in one process, so that compiling is paid for once. Whether all were found by who has to find them. */
export async function tryAllMutants({
  scope,
  seed,
  seeds,
}: Pick<SimulateCommand, 'scope' | 'seed' | 'seeds'>): Promise<boolean> {
  let areFound = true;
  for (const mutant of MUTANTS) {
    beMutant(mutant.name);
    const { isFound, schedules, events, red } = await search(mutant, scope, seed, seeds);
    areFound &&= isFound;
    const verdict = isFound ? 'found' : `not found by ${mutant.foundBy.join(', ')}`;
    const judges = [...red].join(', ') || 'nobody';
    console.log(`${mutant.name}: ${verdict}; ${String(schedules)} schedules, ${String(events)} events, red: ${judges}`);
  }
  return areFound;
}

/** Goes on behind schedules in which only others than those who have to find it were red. */
async function search({ foundBy }: Mutant, scope: ScopeName, seed: number, most: number): Promise<Search> {
  const red = new Set<Judge>();
  let schedules = 0;
  let events = 0;
  while (schedules < most) {
    const { seeds, counts, failure } = await simulate(scope, seed + schedules, most - schedules);
    schedules += seeds;
    events += counts.happenings;
    for (const { judge } of failure?.violations ?? []) red.add(judge);
    if (foundBy.some((judge) => red.has(judge))) return { isFound: true, schedules, events, red };
  }
  return { isFound: false, schedules, events, red };
}
