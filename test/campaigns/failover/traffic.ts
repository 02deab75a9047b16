import type { HoldfastClient } from '../../../src/index.js';
import type { ExecutorProcess } from './executor.js';
import { hear, type Journey, urge } from './journey.js';
import type { Ledger } from './ledger.js';

/** The client: puts workflows into the queue, sends them their message, and hears of their outcomes. */
export class Traffic {
  readonly #client: HoldfastClient;
  readonly #journey: Journey;
  readonly #ledger: Ledger;
  readonly #executors: readonly ExecutorProcess[];
  readonly #underWay = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #started = 0;

  constructor(
    client: HoldfastClient,
    journey: Journey,
    ledger: Ledger,
    executors: readonly ExecutorProcess[],
    rate: number,
  ) {
    this.#client = client;
    this.#journey = journey;
    this.#ledger = ledger;
    this.#executors = executors;
    this.#timer = setInterval(() => {
      this.#follow(this.#begin());
    }, 1_000 / rate);
  }

  /** Starts none any more; resolves when all that were started are acknowledged. */
  async calm(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#underWay);
  }

  async #begin(): Promise<void> {
    const workflowId = `client ${String(this.#started++)}`;
    const input = `input of ${workflowId}`;
    try {
      await this.#client.enqueue(this.#journey, { workflowId, queue: 'line' }, input);
      this.#ledger.tell({ what: 'started', workflowId, input });
      // Who is asked by the old primary must not answer from it.
      for (const executor of this.#executors) executor.hear([workflowId]);
      void hear(this.#client, workflowId, this.#ledger);
      await urge(this.#client, workflowId, this.#ledger);
    } catch (error) {
      this.#ledger.tell({ what: 'wrong', workflowId, error: String(error) });
    }
  }

  #follow(start: Promise<void>): void {
    this.#underWay.add(start);
    void start.finally(() => this.#underWay.delete(start));
  }
}
