import type { ClientBase } from 'pg';
import { outbox, receive, runTransaction, setEvent, transaction } from '../../../../src/index.js';
import { MAILBOX_TOPIC, OUTBOX_TOPIC } from '../traffic.js';
import { pause } from '../../support/abortable-pause.js';
import { WitnessedRun } from './witnessed-run.js';
import { randomUUID } from 'node:crypto';

const ACCOUNTS = 16;
/** A short lease makes for a short idle timeout, which a starved process may miss again and again. */
const PATIENT = { maxAttempts: 1_000, initialDelay: 20, maxDelay: 200 } as const;

/** The calls that came with later releases. */
export class WholeRun extends WitnessedRun {
  /** A transaction, which is open for a while. It takes a lock that others want at its end only. */
  pay(name: string): Promise<string> {
    return this.call(name, () => runTransaction(name, () => this.#payment(name), { retries: PATIENT }));
  }

  announce(name: string, edition: number): Promise<void> {
    return this.call(name, () => setEvent('news', `${this.workflowId} ${String(edition)}`));
  }

  post(name: string, payload: string): Promise<void> {
    return this.call(name, () => outbox.add(OUTBOX_TOPIC, payload, { key: this.workflowId }));
  }

  receive(name: string): Promise<string> {
    return this.call(name, () => receive<string>(MAILBOX_TOPIC));
  }

  async #payment(name: string): Promise<string> {
    const { client } = transaction<ClientBase>();
    const run = randomUUID();
    const account = Number.parseInt(run.slice(0, 2), 16) % ACCOUNTS;
    const payment = [this.workflowId, name, this.epoch, account, run];
    await client.query('INSERT INTO chaos.payment VALUES ($1, $2, $3, $4, $5)', payment);
    await pause(this.times.transactionMs, this.signal);
    await client.query('UPDATE chaos.account SET cents = cents + 1 WHERE id = $1', [account]);
    return `${name}/${String(this.epoch)}/${run}`;
  }
}
