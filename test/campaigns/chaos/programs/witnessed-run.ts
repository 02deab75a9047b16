import { randomUUID } from 'node:crypto';
import type { ClientBase } from 'pg';
import {
  outbox,
  receive,
  runStep,
  runTransaction,
  setEvent,
  sleep,
  step,
  transaction,
  workflow,
} from '../../../../src/index.js';
import type { LedgerClient } from '../ledger/ledger-client.js';
import { MAILBOX_TOPIC, OUTBOX_TOPIC } from '../traffic.js';

/** How long bodies of steps and of transactions take, in milliseconds. */
export interface BodyTimes {
  readonly bodyMs: number;
  readonly transactionMs: number;
}

const ACCOUNTS = 16;

/**
 * The durable calls of one run of a workflow's code, as the ledger gets to know them. The result of a step names the body that made it
 * and the epoch it ran in, so that whoever reads the record can tell whose it is. What returns to the code is told at once: it is an
 * acknowledgement. Made when the code begins; the calls are counted as Holdfast counts them.
 */
export class WitnessedRun {
  readonly #ledger: LedgerClient;
  readonly #times: BodyTimes;
  readonly #workflowId: string;
  readonly #epoch: number;
  readonly #signal: AbortSignal;
  #calls = 0;

  constructor(ledger: LedgerClient, times: BodyTimes) {
    this.#ledger = ledger;
    this.#times = times;
    const { workflowId, epoch, signal } = workflow();
    this.#workflowId = workflowId;
    this.#epoch = epoch;
    this.#signal = signal;
    signal.addEventListener('abort', () => {
      ledger.note({ what: 'lost', workflowId, epoch });
    });
  }

  /** A step: an effect on the outside world, known there by its key. */
  act(name: string, queue?: string): Promise<string> {
    return this.call(name, () => runStep(name, () => this.#body(name, queue)));
  }

  /** A transaction, which is open for a while. It takes a lock that others want at its end only. */
  pay(name: string): Promise<string> {
    return this.call(name, () => runTransaction(name, () => this.#payment(name)));
  }

  async rest(name: string, ms: number): Promise<void> {
    const about = { workflowId: this.#workflowId, epoch: this.#epoch, seq: this.#calls, ms };
    this.#ledger.note({ what: 'sleep', ...about });
    await this.call(name, () => sleep(ms));
    this.#ledger.note({ what: 'awake', ...about });
  }

  announce(name: string, edition: number): Promise<void> {
    return this.call(name, () => setEvent('news', `${this.#workflowId} ${String(edition)}`));
  }

  post(name: string, payload: string): Promise<void> {
    return this.call(name, () => outbox.add(OUTBOX_TOPIC, payload, { key: this.#workflowId }));
  }

  receive(name: string): Promise<string> {
    return this.call(name, () => receive<string>(MAILBOX_TOPIC));
  }

  async call<Value>(name: string, make: () => Promise<Value>): Promise<Value> {
    const seq = this.#calls++;
    const value = await make();
    const about = { workflowId: this.#workflowId, epoch: this.#epoch, step: name, seq };
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
    const place = { workflowId: this.#workflowId, step: name, epoch: this.#epoch };
    await this.#ledger.tell({ what: 'body', run, key, ...place, ...(queue === undefined ? {} : { queue }) });
    const isAborted = await pause(this.#times.bodyMs, signal);
    this.#ledger.note({ what: 'body-end', run, how: isAborted ? 'aborted' : 'done' });
    return `${name}/${String(this.#epoch)}/${run}`;
  }

  async #payment(name: string): Promise<string> {
    const { client } = transaction<ClientBase>();
    const run = randomUUID();
    const account = Number.parseInt(run.slice(0, 2), 16) % ACCOUNTS;
    const payment = [this.#workflowId, name, this.#epoch, account, run];
    await client.query('INSERT INTO chaos.payment VALUES ($1, $2, $3, $4, $5)', payment);
    await pause(this.#times.transactionMs, this.#signal);
    await client.query('UPDATE chaos.account SET cents = cents + 1 WHERE id = $1', [account]);
    return `${name}/${String(this.#epoch)}/${run}`;
  }
}

/** Resolves after that time, or in the moment in which the signal fires; true: it has. */
function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(true);
  return new Promise((resolve) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve(false);
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
