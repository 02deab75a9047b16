import type { SeededRandom } from '../support/seeded-random.js';
import type { WorkerOptions } from './messages.js';
import type { Blow, Point, Trap } from './points.js';
import { Worker } from './worker.js';

/** How long a worker is stopped, and how long one that was killed stays away at most, in leases. */
const PAUSE_LEASES = 2.5;
const LONGEST_DOWN_LEASES = 1;
/** Share of the dead that come back under their old name. What they ran is recovered at once then, without waiting for the lease. */
const SAME_NAME = 0.25;

/** One kill or pause. `at random`: at no point that was chosen. */
export interface Strike {
  readonly point: Point | 'at random';
  readonly blow: Blow;
}

/** The workers of the campaign: as many as were asked for, give or take those that are just dead. */
export class Crew {
  readonly strikes: Strike[] = [];
  readonly #program: string;
  readonly #common: Omit<WorkerOptions, 'executorId'>;
  readonly #random: SeededRandom;
  readonly #workers = new Set<Worker>();
  readonly #recoveries = new Set<Promise<void>>();
  #named = 0;
  #isOver = false;

  constructor(program: string, common: Omit<WorkerOptions, 'executorId'>, random: SeededRandom) {
    this.#program = program;
    this.#common = common;
    this.#random = random;
  }

  /** Those that are neither dead nor stopped. */
  get running(): readonly Worker[] {
    return [...this.#workers].filter(({ state }) => state === 'running');
  }

  byPid(pid: number): Worker | undefined {
    return [...this.#workers].find((worker) => worker.pid === pid);
  }

  async launch(executorId = `worker ${String(this.#named++)}`): Promise<void> {
    const worker = await Worker.launch(this.#program, { ...this.#common, executorId }, (struck, trap) => {
      this.#struck(struck, trap);
    });
    this.#workers.add(worker);
  }

  /** Kills or stops a worker, and sees to it that the crew is complete again after a while. */
  strike(worker: Worker, { point, blow }: Strike): void {
    this.strikes.push({ point, blow });
    if (blow === 'kill') this.#recover(this.#replace(worker));
    else {
      worker.stop();
      this.#recover(this.#wake(worker));
    }
  }

  /** Resolves when everybody is well. */
  async allWell(): Promise<void> {
    while (this.#recoveries.size > 0) await Promise.all(this.#recoveries);
  }

  async killAll(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled([...this.#workers].map((worker) => worker.kill()));
    await Promise.allSettled(this.#recoveries);
    await Promise.allSettled([...this.#workers].map((worker) => worker.kill()));
  }

  /** It has struck itself down. */
  #struck(worker: Worker, { point, blow }: Trap): void {
    this.strikes.push({ point, blow });
    this.#recover(blow === 'kill' ? this.#replace(worker) : this.#wake(worker));
  }

  async #replace(worker: Worker): Promise<void> {
    await worker.kill();
    this.#workers.delete(worker);
    const executorId = this.#random.next() < SAME_NAME ? worker.executorId : undefined;
    await this.#later(this.#random.between(0, LONGEST_DOWN_LEASES));
    if (!this.#isOver) await this.launch(executorId);
  }

  async #wake(worker: Worker): Promise<void> {
    await this.#later(PAUSE_LEASES);
    worker.continue();
  }

  #later(leases: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, leases * this.#common.leaseMs));
  }

  #recover(recovery: Promise<void>): void {
    const known = recovery.finally(() => this.#recoveries.delete(known));
    this.#recoveries.add(known);
  }
}
