import { once } from 'node:events';
import { parentPort, Worker } from 'node:worker_threads';
import { beMutant } from './program-bundle.js';
import type { ScopeName } from './scenarios.js';
import { simulate, type Simulation } from './simulate.js';
import { addCounts, newCounts } from './violations.js';

/** So many schedules are run in one thread before the next ones are given out. */
const CHUNK = 50;

/** Schedules that follow each other. */
export interface Schedules {
  readonly scope: ScopeName;
  readonly seed: number;
  readonly seeds: number;
  /** The mistake that the library is to have. */
  readonly mutant: string | undefined;
}

/** Runs schedules in several threads, each of which has a copy of the program to itself. */
export class Threads {
  readonly #workers: readonly Worker[];

  /** @param program Calls {@link serveSchedules} in each. */
  constructor(program: URL, threads: number) {
    this.#workers = Array.from({ length: threads }, () => new Worker(program));
  }

  /** As {@link simulate}: the first schedule that fails is found, and counted is what came before it, however many threads there are. */
  async simulate({ scope, seed, seeds, mutant }: Schedules): Promise<Simulation> {
    const done = new Map<number, Simulation>();
    let next = seed;
    let firstFailed = Infinity;
    await Promise.all(
      this.#workers.map(async (worker) => {
        while (firstFailed === Infinity && next < seed + seeds) {
          const chunk = { scope, seed: next, seeds: Math.min(CHUNK, seed + seeds - next), mutant };
          next += chunk.seeds;
          const simulation = await simulateIn(worker, chunk);
          done.set(chunk.seed, simulation);
          if (simulation.failure !== undefined) firstFailed = Math.min(firstFailed, chunk.seed);
        }
      }),
    );
    const counts = newCounts();
    // Threads may have run chunks behind the one that failed.
    for (const [first, simulation] of done) if (first <= firstFailed) addCounts(counts, simulation.counts);
    const failure = done.get(firstFailed)?.failure;
    return { seeds: failure === undefined ? seeds : failure.seed - seed + 1, counts, failure };
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

/** In a thread: runs what it is given. */
export function serveSchedules(): void {
  parentPort?.on('message', ({ scope, seed, seeds, mutant }: Schedules) => {
    if (mutant !== undefined) beMutant(mutant);
    void simulate(scope, seed, seeds).then((simulation) => parentPort?.postMessage(simulation));
  });
}

/** @throws What is thrown in the thread. */
async function simulateIn(worker: Worker, chunk: Schedules): Promise<Simulation> {
  const answered = once(worker, 'message') as Promise<[Simulation]>;
  worker.postMessage(chunk);
  const [simulation] = await answered;
  return simulation;
}
