import pg from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  defineWorkflow,
  runStep,
  runTransaction,
  step,
  transaction,
  TransactionAbortedError,
  TransactionEndedError,
  workflow,
  type CallersTransaction,
  type Holdfast,
  type TransactionOptions,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

/** Runs one statement with whichever library the transaction's client is of. */
async function query(text: string, values: string[] = []): Promise<unknown[]> {
  const { client } = transaction<pg.PoolClient | TransactionSql>();
  return 'unsafe' in client
    ? [...(await client.unsafe(text, values))]
    : (await client.query<Record<string, unknown>>(text, values)).rows;
}

const LIBRARIES = ['pg', 'a pool of pg', 'postgres'] as const;

describe.each(LIBRARIES)('with %s', (library) => {
  let bed: Bed;
  let holdfast: Holdfast;
  let pool: pg.Pool | undefined;
  let sql: postgres.Sql | undefined;
  let scenario: () => Promise<unknown> = () => Promise.resolve();
  const run = defineWorkflow('run', () => scenario());
  const none = defineWorkflow('none', () => Promise.resolve());

  beforeAll(async () => {
    bed = await createBed();
    await bed.sql.query('CREATE TABLE effect (id text PRIMARY KEY, n int NOT NULL DEFAULT 1)');
    if (library === 'a pool of pg') pool = new pg.Pool({ connectionString: bed.database.url });
    if (library === 'postgres') sql = postgres(bed.database.url, { onnotice: () => undefined });
    holdfast = await bed.launch({ workflows: [run, none], database: pool ?? sql ?? bed.database.url });
  });
  afterAll(async () => {
    await holdfast.close();
    await pool?.end();
    await sql?.end();
    await bed.close();
  });
  beforeEach(() => bed.sql.query('TRUNCATE effect').then(() => undefined));

  let count = 0;
  async function execute<Result>(body: () => Promise<Result>): Promise<{ result: Promise<Result>; id: string }> {
    scenario = body;
    const id = `tx-${String(++count)}`;
    const handle = await holdfast.start(run, { workflowId: id });
    const result = handle.result() as Promise<Result>;
    result.catch(() => undefined);
    return { result, id };
  }
  const effects = async () =>
    (await bed.sql.query<{ id: string; n: number }>('SELECT id, n FROM effect ORDER BY id')).rows;
  const steps = async (id: string) =>
    (
      await bed.sql.query<{ seq: number; kind: string; attempts: number; failed: boolean }>(
        'SELECT seq, kind, attempts, error IS NOT NULL AS failed FROM holdfast.step_result WHERE workflow_id = $1 ORDER BY seq',
        [id],
      )
    ).rows;

  test('what the body wrote and the record of its result commit together', async () => {
    let seenInside: unknown;
    const { result, id } = await execute(async () => {
      const before = await runStep('before', () => Promise.resolve(1));
      const key = await runTransaction('write', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        seenInside = await effects();
        expect(transaction().idempotencyKey).toBe(step().idempotencyKey);
        expect(transaction().name).toBe('write');
        return new Map([['at', new Date(0)]]);
      });
      const after = await runStep('after', () => Promise.resolve(2));
      return [before, key, after];
    });
    expect(await result).toEqual([1, new Map([['at', new Date(0)]]), 2]);
    expect(seenInside).toEqual([]);
    expect(await effects()).toEqual([{ id: 'a', n: 1 }]);
    expect(await steps(id)).toMatchObject([{ kind: 'step' }, { kind: 'transaction', attempts: 1 }, { kind: 'step' }]);
  });

  test.each(['commits', 'rolls back'] as const)(
    'what joins by the client may be the first in the body, and is there if the body %s, or not',
    async (end) => {
      const resource = `${library}, ${end}`;
      const { result, id } = await execute(() =>
        runTransaction('join', async () => {
          const client = transaction().client as CallersTransaction;
          await holdfast.leases.acceptFence({ transaction: client, resource, token: 7 });
          await holdfast.enqueue(none, { transaction: client, workflowId: `${resource}, enqueued` });
          await holdfast.send(workflow().workflowId, 'joined', 1, { transaction: client });
          if (end === 'rolls back') throw new RangeError('no');
        }),
      );
      expect(await result.catch((error: unknown) => (error as Error).name)).toBe(
        end === 'commits' ? undefined : 'RangeError',
      );
      const { rows } = await bed.sql.query(
        `SELECT (SELECT count(*)::int FROM holdfast.fence WHERE resource = $1) AS fences,
                (SELECT count(*)::int FROM holdfast.workflow_status WHERE workflow_id = $1 || ', enqueued') AS workflows,
                (SELECT count(*)::int FROM holdfast.message WHERE workflow_id = $2) AS messages`,
        [resource, id],
      );
      const n = end === 'commits' ? 1 : 0;
      expect(rows).toEqual([{ fences: n, workflows: n, messages: n }]);
    },
  );

  test.runIf(library === 'postgres')('what the client notifies is heard when the body has committed', async () => {
    const heard: (string | undefined)[] = [];
    bed.sql.on('notification', ({ payload }) => heard.push(payload));
    await bed.sql.query('LISTEN sold');
    const sell = async (payload: string, end: 'commits' | 'rolls back') => {
      const { result } = await execute(() =>
        runTransaction('sell', async () => {
          await transaction<TransactionSql>().client.notify('sold', payload);
          if (end === 'rolls back') throw new RangeError('no');
        }),
      );
      await result.catch(() => undefined);
    };
    await sell('none', 'rolls back');
    await sell('one', 'commits');
    await waitUntil(() => heard.length > 0, 'it is heard');
    expect(heard).toEqual(['one']);
    await bed.sql.query('UNLISTEN sold');
  });

  test('what the body threw is recorded, and what it wrote is not there', async () => {
    let runs = 0;
    const { result, id } = await execute(() =>
      runTransaction(
        'fails',
        async () => {
          runs += 1;
          await query("INSERT INTO effect VALUES ('a')");
          throw new RangeError('no');
        },
        { retries: { maxAttempts: 2, initialDelay: 1 } },
      ),
    );
    await expect(result).rejects.toMatchObject({ code: 'STEP_RETRIES_EXHAUSTED' });
    expect(runs).toBe(2);
    expect(await effects()).toEqual([]);
    expect(await steps(id)).toMatchObject([{ kind: 'transaction', failed: true, attempts: 2 }]);
  });

  test('a result that cannot be recorded takes back what the body wrote', async () => {
    const { result } = await execute(() =>
      runTransaction('function', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        return () => 1;
      }),
    );
    await expect(result).rejects.toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE' });
    expect(await effects()).toEqual([]);
  });

  test('parallel transactions and steps of one workflow each take effect once, in any order', async () => {
    const { result, id } = await execute(() =>
      Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          index % 3 === 0
            ? runStep('step', () => Promise.resolve(index))
            : runTransaction('tx', async () => {
                await query('INSERT INTO effect VALUES ($1)', [`p${String(index).padStart(2, '0')}`]);
                return index;
              }),
        ),
      ),
    );
    expect(await result).toEqual(Array.from({ length: 12 }, (_, index) => index));
    expect(await effects()).toHaveLength(8);
    expect(await steps(id)).toHaveLength(12);
  });

  test.each(['repeatable read', 'serializable'] as const)(
    'a parallel step that is recorded meanwhile does not fail a transaction for good: %s',
    async (isolation) => {
      const begun = gate();
      const recorded = gate();
      let runs = 0;
      const { result } = await execute(() =>
        Promise.all([
          runTransaction(
            'tx',
            async () => {
              runs += 1;
              await query('SELECT 1');
              begun.open();
              await recorded.opened;
              await query("INSERT INTO effect VALUES ('a')");
            },
            { isolation },
          ),
          runStep('beside', () => begun.opened).then(() => {
            recorded.open();
          }),
        ]),
      );
      await result;
      expect(runs).toBe(2);
      expect(await effects()).toHaveLength(1);
    },
  );

  test('a serialisation failure runs the body again, apart from its attempts', async () => {
    await bed.sql.query("INSERT INTO effect VALUES ('counter', 0)");
    let runs = 0;
    const options: TransactionOptions = { isolation: 'repeatable read' };
    const { result, id } = await execute(() =>
      runTransaction(
        'add',
        async () => {
          runs += 1;
          const [row] = await query("SELECT n FROM effect WHERE id = 'counter'");
          if (runs === 1) await bed.sql.query("UPDATE effect SET n = n + 10 WHERE id = 'counter'");
          await query(`UPDATE effect SET n = ${String((row as { n: number }).n + 1)} WHERE id = 'counter'`);
        },
        options,
      ),
    );
    await result;
    expect(runs).toBe(2);
    expect(await effects()).toEqual([{ id: 'counter', n: 11 }]);
    expect(await steps(id)).toMatchObject([{ attempts: 1 }]);
  });

  test('of two transactions in a deadlock both take effect', async () => {
    await bed.sql.query("INSERT INTO effect VALUES ('x', 0), ('y', 0)");
    const both = [gate(), gate()];
    let runs = 0;
    const add = (first: string, second: string, mine: number) =>
      runTransaction(`add ${first}`, async () => {
        runs += 1;
        await query('UPDATE effect SET n = n + 1 WHERE id = $1', [first]);
        both[mine]?.open();
        await both[1 - mine]?.opened;
        await query('UPDATE effect SET n = n + 1 WHERE id = $1', [second]);
      });
    const { result } = await execute(() => Promise.all([add('x', 'y', 0), add('y', 'x', 1)]));
    await result;
    // A fourth on a machine so slow that the one which was rolled back is the first to ask for the execution's turn: the other one
    // has what it waits for then, and has to begin anew.
    expect([3, 4]).toContain(runs);
    expect(await effects()).toEqual([
      { id: 'x', n: 2 },
      { id: 'y', n: 2 },
    ]);
  });

  test('a read-only transaction may not write, and its result is recorded', async () => {
    await bed.sql.query("INSERT INTO effect VALUES ('a')");
    const { result, id } = await execute(async () => [
      await runTransaction('read', () => query('SELECT id FROM effect'), { readOnly: true }),
      await runTransaction('write', () => query("INSERT INTO effect VALUES ('b')"), { readOnly: true }).catch(
        (error: unknown) => (error as { code: string }).code,
      ),
    ]);
    expect(await result).toEqual([[{ id: 'a' }], '25006']);
    expect(await steps(id)).toMatchObject([{ kind: 'transaction' }, { kind: 'transaction', failed: true }]);
  });

  test('a body that runs out of time commits nothing, and its connection is not used again', async () => {
    const late = gate();
    let lateStatement: Promise<unknown> | undefined;
    const { result } = await execute(async () => {
      const error: unknown = await runTransaction(
        'slow',
        async () => {
          await query("INSERT INTO effect VALUES ('late 1')");
          const { client } = transaction<pg.PoolClient | TransactionSql>();
          const text = "INSERT INTO effect VALUES ('late 2')";
          await late.opened;
          lateStatement = 'unsafe' in client ? Promise.resolve(client.unsafe(text)) : client.query(text);
          await lateStatement;
        },
        { timeout: 500 },
      ).catch((reason: unknown) => reason);
      late.open();
      await waitUntil(() => lateStatement !== undefined, 'the late statement is sent');
      await lateStatement?.catch(() => undefined);
      return (error as { code: string }).code;
    });
    expect(await result).toBe('STEP_TIMEOUT');
    expect(await effects()).toEqual([]);
  });

  test('a body that ends its transaction itself is told so, and records a failure', async () => {
    const { result } = await execute(() =>
      runTransaction('commits', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        await query('COMMIT');
      }),
    );
    await expect(result).rejects.toBeInstanceOf(TransactionEndedError);
  });

  test('a body that swallows the failure of a statement is told so, and nothing of it stays', async () => {
    const { result } = await execute(() =>
      runTransaction('swallows', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        await query('SELECT 1 / 0').catch(() => undefined);
      }),
    );
    await expect(result).rejects.toBeInstanceOf(TransactionAbortedError);
    expect(await effects()).toEqual([]);
  });
});
