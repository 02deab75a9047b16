import { MUTANTS, type Mutant } from './mutants.js';
import type { SimulateCommand } from './options.js';
import type { Threads } from './threads.js';
import type { Judge } from './violations.js';

type Asked = Pick<SimulateCommand, 'scope' | 'seed' | 'seeds'>;

interface Search {
  readonly isFound: boolean;
  readonly schedules: number;
  readonly events: number;
  /** Judges that were red, also before one that has to be. */
  readonly red: ReadonlySet<Judge>;
}

/** Tries one mutant after the other in the same threads, so that compiling is paid for once. Whether all were found by who has to find them. */
export async function tryAllMutants(threads: Threads, asked: Asked): Promise<boolean> {
  let areFound = true;
  for (const mutant of MUTANTS) {
    const { isFound, schedules, events, red } = await search(threads, mutant, asked);
    areFound &&= isFound;
    const verdict = isFound ? 'found' : `not found by ${mutant.foundBy.join(', ')}`;
    const judges = [...red].join(', ') || 'nobody';
    console.log(`${mutant.name}: ${verdict}; ${String(schedules)} schedules, ${String(events)} events, red: ${judges}`);
  }
  return areFound;
}

/** Goes on behind schedules in which only others than those who have to find it were red. */
async function search(
  threads: Threads,
  { name, foundBy }: Mutant,
  { scope, seed, seeds: most }: Asked,
): Promise<Search> {
  const red = new Set<Judge>();
  let schedules = 0;
  let events = 0;
  while (schedules < most) {
    const { seeds, counts, failure } = await threads.simulate({
      scope,
      seed: seed + schedules,
      seeds: most - schedules,
      mutant: name,
    });
    schedules += seeds;
    events += counts.happenings;
    for (const { judge } of failure?.violations ?? []) red.add(judge);
    if (foundBy.some((judge) => red.has(judge))) return { isFound: true, schedules, events, red };
  }
  return { isFound: false, schedules, events, red };
}
