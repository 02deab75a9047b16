import { randomUUID } from 'node:crypto';
import { runStep, sleep, step, workflow } from '../../../../src/index.js';
import { pause } from '../../support/abortable-pause.js';
import type { LedgerClient } from '../ledger/ledger-client.js';

/** How long bodies of steps and of transactions take, in milliseconds. */
export interface BodyTimes {
  readonly bodyMs: number;
  readonly transactionMs: number;
}

/**
 * The durable calls of one run of a workflow's code, as far as every release has them, as the ledger gets to know them. The result of a step names the body that made it
 * and the epoch it ran in, so that whoever reads the record can tell whose it is. What returns to the code is told at once: it is an
 * acknowledgement. Made when the code begins; the calls are counted as Holdfast counts them.
 */
export class WitnessedRun {
  readonly #ledger: LedgerClient;
  protected readonly times: BodyTimes;
  protected readonly workflowId: string;
  protected readonly epoch: number;
  protected readonly signal: AbortSignal;
  #calls = 0;

  constructor(ledger: LedgerClient, times: BodyTimes) {
    this.#ledger = ledger;
    this.times = times;
    const { workflowId, epoch, signal } = workflow();
    this.workflowId = workflowId;
    this.epoch = epoch;
    this.signal = signal;
    signal.addEventListener('abort', () => {
      ledger.note({ what: 'lost', workflowId, epoch });
    });
  }

  /** A step: an effect on the outside world, known there by its key. */
  act(name: string, queue?: string): Promise<string> {
    return this.call(name, () => runStep(name, () => this.#body(name, queue)));
  }

  async rest(name: string, ms: number): Promise<void> {
    const about = { workflowId: this.workflowId, epoch: this.epoch, seq: this.#calls, ms };
    this.#ledger.note({ what: 'sleep', ...about });
    await this.call(name, () => sleep(ms));
    this.#ledger.note({ what: 'awake', ...about });
  }

  async call<Value>(name: string, make: () => Promise<Value>): Promise<Value> {
    const seq = this.#calls++;
    const value = await make();
    const about = { workflowId: this.workflowId, epoch: this.epoch, step: name, seq };
    this.#ledger.note({
      what: 'step',
      ...about,
      ...(value === undefined ? {} : { value: JSON.stringify(value) }),
    });
    return value;
  }

  async #body(name: string, queue: string | undefined): Promise<string> {
    const { idempotencyKey: key, signal } = step();
    const run = randomUUID();
    const place = { workflowId: this.workflowId, step: name, epoch: this.epoch };
    await this.#ledger.tell({ what: 'body', run, key, ...place, ...(queue === undefined ? {} : { queue }) });
    const isAborted = await pause(this.times.bodyMs, signal);
    this.#ledger.note({ what: 'body-end', run, how: isAborted ? 'aborted' : 'done' });
    return `${name}/${String(this.epoch)}/${run}`;
  }
}
