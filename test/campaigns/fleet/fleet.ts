import type { SeededRandom } from '../support/seeded-random.js';
import { ExecutorProcess } from './executor.js';
import type { Ledger } from './ledger.js';
import type { ExecutorOptions } from './messages.js';

/** Share of the dead that come back under their old name. What they ran is recovered at once then, without waiting for the lease. */
const SAME_NAME = 0.25;

/** The executors of the campaign: as many as were asked for, give or take those that are just dead. */
export class Fleet {
  readonly #program: string;
  readonly #ledger: Ledger;
  readonly #common: Omit<ExecutorOptions, 'executorId'>;
  readonly #executors = new Set<ExecutorProcess>();
  #named = 0;

  constructor(program: string, ledger: Ledger, common: Omit<ExecutorOptions, 'executorId'>) {
    this.#program = program;
    this.#ledger = ledger;
    this.#common = common;
  }

  /** Those that are neither dead nor stopped. */
  get running(): readonly ExecutorProcess[] {
    return [...this.#executors].filter(({ state }) => state === 'running');
  }

  async launch(executorId = `executor ${String(this.#named++)}`): Promise<ExecutorProcess> {
    const executor = await ExecutorProcess.launch(this.#program, this.#ledger, { ...this.#common, executorId });
    this.#executors.add(executor);
    return executor;
  }

  /** Kills one, and launches another in its place after that time. */
  async replace(victim: ExecutorProcess, random: SeededRandom, downMs: number): Promise<void> {
    const executorId = random.next() < SAME_NAME ? victim.executorId : undefined;
    await victim.kill();
    this.#executors.delete(victim);
    await new Promise((resolve) => setTimeout(resolve, downMs));
    await this.launch(executorId);
  }

  continueAll(): void {
    for (const executor of this.#executors) executor.continue();
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#executors].map((executor) => executor.kill()));
  }
}
