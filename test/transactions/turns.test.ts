import { expect, test } from 'vitest';
import type { Driver } from '../../src/drivers/driver.js';
import { ConnectionLostError } from '../../src/errors/database-errors.js';
import { PostgresTransactions } from '../../src/store/postgres/transactions/postgres-transactions.js';
import type { SourceTransaction, TransactionSource } from '../../src/store/postgres/transactions/source.js';
import type { TransactionJob } from '../../src/store/transaction-store.js';
import { gate, waitUntil } from '../support/launch.js';

// A transaction whose connection breaks has ended before its body has, and before the turn has come that the body waits for.

/** Each run ends at once when `breaks` is called, whatever its work does. */
class BreakingSource implements TransactionSource {
  readonly slots = undefined;
  runs = 0;
  breaks: () => void = () => undefined;

  async run<Result>(_: unknown, work: (open: SourceTransaction) => Promise<Result>): Promise<Result> {
    this.runs += 1;
    const broken = new Promise<never>((_resolve, reject) => {
      this.breaks = () => {
        reject(new ConnectionLostError('The connection broke.'));
      };
    });
    const open: SourceTransaction = {
      client: undefined,
      abandon: () => undefined,
      reply: () => Promise.resolve('{"answer":"recorded"}'),
      isAlive: () => Promise.resolve(true),
    };
    return Promise.race([work(open), broken]);
  }
}

const job = (body: TransactionJob['body']): TransactionJob => ({
  ownership: { workflowId: 'w', token: 'token', epoch: 1, recordVersion: 1 },
  seq: 0,
  name: 'write',
  modes: { isolation: 'read committed', readOnly: false },
  idleTimeoutMs: null,
  dataSource: undefined,
  signal: new AbortController().signal,
  mayRun: () => undefined,
  body,
});
const record = {
  seq: 0,
  name: 'write',
  kind: 'transaction',
  output: '1',
  error: null,
  attempts: 1,
  attemptErrors: null,
  childId: null,
  elapsedMs: 0,
} as const;

function transactionsOf(source: TransactionSource, takeTurn: () => Promise<() => void>): PostgresTransactions {
  return new PostgresTransactions({
    driver: undefined as unknown as Driver,
    schema: 'holdfast',
    turns: { takeTurn },
    closing: new AbortController().signal,
    idleTimeoutMs: 1_000,
    own: source,
    dataSources: new Map(),
    verify: () => Promise.resolve(true),
  });
}

test.each(['while it waits for its turn', 'while its body runs'])(
  'the turn of a transaction whose connection broke %s is given back: the workflow would hang for ever',
  async (when) => {
    const source = new BreakingSource();
    const granted = gate();
    const body = gate();
    const turns = { asked: 0, given: 0, back: 0 };
    const transactions = transactionsOf(source, async () => {
      if (++turns.asked === 1 && when === 'while it waits for its turn') await granted.opened;
      turns.given += 1;
      return () => {
        turns.back += 1;
      };
    });
    let runs = 0;
    const answer = transactions.run(
      job(async () => {
        if (++runs === 1 && when === 'while its body runs') await body.opened;
        return record;
      }),
    );
    await waitUntil(() => (when === 'while its body runs' ? runs : turns.asked) === 1, 'it is there');
    source.breaks();
    expect(await answer).toEqual({ kind: 'recorded' });
    granted.open();
    body.open();
    await waitUntil(() => turns.given === 2, 'the first has its turn, too late');
    expect(source.runs).toBe(2);
    expect(turns.back).toBe(2);
  },
);
