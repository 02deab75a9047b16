import { setTimeout as sleepFor } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  defineDataSource,
  defineWorkflow,
  runStep,
  runTransaction,
  sleep,
  step,
  transaction,
  type DataSourceAdapter,
  type Holdfast,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

// What bodies, libraries and neighbours do that they should not, or that comes at the worst moment.

let bed: Bed;
let beside: pg.Pool;
let scenario: (id: string) => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', (id: string) => scenario(id));

const query = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
  (await transaction<pg.PoolClient>().client.query<Record<string, unknown>>(text, values)).rows;

beforeAll(async () => {
  bed = await createBed();
  beside = new pg.Pool({ connectionString: bed.database.url });
  beside.on('error', () => undefined);
  await bed.sql.query(`CREATE TABLE effect (id text, n int NOT NULL DEFAULT 0);
    CREATE TABLE once (id text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO once VALUES ('taken')`);
});
afterAll(async () => {
  await beside.end();
  await bed.close();
});
beforeEach(() => bed.sql.query('TRUNCATE effect').then(() => undefined));

function transactionOrError(): unknown {
  try {
    return transaction().workflowId;
  } catch (error) {
    return error;
  }
}

let count = 0;
async function start<Result>(
  holdfast: Holdfast,
  body: (id: string) => Promise<Result>,
  options: { timeout?: number } = {},
): Promise<{ result: Promise<Result>; id: string }> {
  scenario = body;
  const id = `attack-${String(++count)}`;
  const handle = await holdfast.start(run, { workflowId: id, ...options }, id);
  const result = handle.result() as Promise<Result>;
  result.catch(() => undefined);
  return { result, id };
}
const effects = async (): Promise<string[]> =>
  (await bed.sql.query<{ id: string }>('SELECT id FROM effect ORDER BY id')).rows.map(({ id }) => id);

describe('bodies that do not keep to the rules', () => {
  let holdfast: Holdfast;
  beforeAll(async () => {
    holdfast = await bed.launch({ workflows: [run] });
  });

  afterAll(() => holdfast.close());

  test('what listens to the signal of a transaction is in its body, also in one that runs again after a conflict', async () => {
    const began = gate();
    const heard: unknown[] = [];
    let runs = 0;
    const { result, id } = await start(holdfast, () =>
      runTransaction('listens', async () => {
        if (++runs === 1) await query("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$");
        const { signal } = step();
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            // A listener that throws ends the process.
            heard.push(transactionOrError());
            reject(signal.reason as Error);
          });
          began.open();
        });
      }),
    );
    await began.opened;
    await holdfast.admin.cancel(id);
    await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await waitUntil(() => heard.length > 0, 'the signal has fired');
    expect([runs, heard]).toEqual([2, [id]]);
  });

  const inTransaction = async (body: () => Promise<unknown>, options = {}) =>
    (await start(holdfast, () => runTransaction('write', body, options))).result;

  test('a body that ends its transaction itself is not run again: what it committed would be there twice', async () => {
    const ends = inTransaction(
      async () => {
        await query("INSERT INTO effect VALUES ('a')");
        await query('COMMIT');
      },
      { retries: { maxAttempts: 3, initialDelay: 1 } },
    );
    await expect(ends).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(await effects()).toEqual(['a']);
  });

  test.each(['COMMIT; BEGIN', 'COMMIT AND CHAIN', 'ROLLBACK; BEGIN', 'ROLLBACK AND CHAIN'])(
    'a body that goes on in a transaction of its own is found out: %s',
    async (statement) => {
      const ends = inTransaction(async () => {
        await query(statement);
        await query("INSERT INTO effect VALUES ('after')");
      });
      await expect(ends).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
      expect(await effects()).toEqual([]);
    },
  );

  test('savepoints, a nested BEGIN, temporary tables and settings of the body do not reach the record', async () => {
    const value = await inTransaction(async () => {
      await query('SAVEPOINT a');
      await query('SELECT 1 / 0').catch(() => undefined);
      await query('ROLLBACK TO a');
      await query('BEGIN');
      await query('CREATE TEMP TABLE workflow_status (workflow_id text) ON COMMIT DROP');
      await query('CREATE TEMP TABLE step_result (workflow_id text) ON COMMIT DROP');
      await query('SET LOCAL search_path = public, pg_temp, pg_catalog');
      await query("SET LOCAL TimeZone = 'Asia/Tokyo'");
      await query("SET LOCAL enable_indexscan = off; SET LOCAL row_security = off; SET LOCAL lock_timeout = '1ms'");
      await query("INSERT INTO effect VALUES ('a')");
      return 'value';
    });
    expect(value).toBe('value');
    expect(await effects()).toEqual(['a']);
  });

  test('a result that cannot be stored is not tried again', async () => {
    let runs = 0;
    const refused = inTransaction(
      async () => {
        runs += 1;
        await query("INSERT INTO effect VALUES ('a')");
        return () => 1;
      },
      { retries: { maxAttempts: 3, initialDelay: 1 } },
    );
    await expect(refused).rejects.toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE' });
    expect(runs).toBe(1);
    expect(await effects()).toEqual([]);
  });

  test('what only COMMIT finds is the error of the body, and nothing of it stays', async () => {
    const refused = inTransaction(async () => {
      await query("INSERT INTO effect VALUES ('a')");
      await query("INSERT INTO once VALUES ('taken')");
    });
    await expect(refused).rejects.toMatchObject({ name: 'DatabaseError', sqlState: '23505' });
    expect(await effects()).toEqual([]);
  });

  test('statements that the body does not wait for are part of the transaction', async () => {
    const value = await inTransaction(async () => {
      for (const id of ['a', 'b', 'c']) void query('INSERT INTO effect VALUES ($1)', [id]);
      return Promise.resolve('value');
    });
    expect(value).toBe('value');
    expect(await effects()).toEqual(['a', 'b', 'c']);
    const failed = inTransaction(async () => {
      query('SELECT 1 / 0').catch(() => undefined);
      return Promise.resolve();
    });
    await expect(failed).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
  });

  test('durable calls are refused inside', async () => {
    await expect(inTransaction(() => sleep(1))).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  });

  test('a read-only transaction cannot be made to write', async () => {
    const refused = inTransaction(
      async () => {
        await query('SET TRANSACTION READ WRITE');
        await query("INSERT INTO effect VALUES ('a')");
      },
      { readOnly: true },
    );
    await expect(refused).rejects.toMatchObject({ code: '25001' });
    expect(await effects()).toEqual([]);
  });

  test('the connection is ended in the middle of the body: it runs again', async () => {
    let runs = 0;
    const value = await inTransaction(async () => {
      runs += 1;
      const [row] = await query('SELECT pg_backend_pid() AS pid');
      await query("INSERT INTO effect VALUES ('a')");
      if (runs === 1) await bed.sql.query('SELECT pg_terminate_backend($1)', [row?.['pid']]);
      await query('SELECT 1');
      return runs;
    });
    expect(value).toBe(2);
    expect(await effects()).toEqual(['a']);
  });

  test('C59 a statement timeout of the body’s own is its error', async () => {
    const refused = inTransaction(async () => {
      await query("SET LOCAL statement_timeout = '20ms'");
      await query("INSERT INTO effect VALUES ('a')");
      await query('SELECT pg_sleep(10)');
    });
    await expect(refused).rejects.toMatchObject({ code: '57014' });
    expect(await effects()).toEqual([]);
  });

  test('a cancel in the middle of the body takes back what it wrote, at once', async () => {
    const arrived = gate();
    const { result, id } = await start(holdfast, () =>
      runTransaction('write', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        arrived.open();
        await new Promise(() => undefined);
      }),
    );
    await arrived.opened;
    await holdfast.admin.cancel(id);
    await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    // No lock is left behind.
    await bed.sql.query("BEGIN; SET LOCAL lock_timeout = '10s'; LOCK TABLE effect IN ACCESS EXCLUSIVE MODE; COMMIT");
    expect(await effects()).toEqual([]);
  });

  test('a workflow whose time is up in the middle of the body writes nothing', async () => {
    const { result } = await start(
      holdfast,
      () =>
        runTransaction('write', async () => {
          await query("INSERT INTO effect VALUES ('a')");
          await new Promise(() => undefined);
        }),
      { timeout: 100 },
    );
    await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
    expect(await effects()).toEqual([]);
  });

  test('of two serialisable transactions of two workflows that skew, one runs again, which COMMIT may say', async () => {
    await bed.sql.query("INSERT INTO effect VALUES ('x', 1), ('y', 1)");
    const both = [gate(), gate()];
    let runs = 0;
    const take = (mine: number) =>
      runTransaction(
        'take',
        async () => {
          runs += 1;
          const [sum] = await query('SELECT sum(n)::int AS n FROM effect');
          both[mine]?.open();
          await both[1 - mine]?.opened;
          if (Number(sum?.['n']) < 2) return false;
          await query('UPDATE effect SET n = 0 WHERE id = $1', ['xy'[mine]]);
          return true;
        },
        { isolation: 'serializable' },
      );
    const first = await start(holdfast, () => take(0));
    const second = await start(holdfast, () => take(1));
    expect([await first.result, await second.result].sort()).toEqual([false, true]);
    expect(runs).toBe(3);
  });

  test('a plain step beside transactions that never stop has its turn', async () => {
    let isRecorded = false;
    let most = 0;
    const loop = async (): Promise<void> => {
      for (let n = 0; n < 60 && !isRecorded; n++) {
        most = Math.max(most, n);
        await runTransaction('write', () => query('SELECT 1'));
      }
    };
    const { result } = await start(holdfast, () =>
      Promise.all([
        ...Array.from({ length: 4 }, loop),
        runStep('beside', () => sleepFor(20)).then(() => {
          isRecorded = true;
        }),
      ]),
    );
    await result;
    expect(most).toBeLessThan(59);
  });
});

test('a process that shuts down in the middle of a body gives it back, and another one runs it', async () => {
  const arrived = gate();
  let runs = 0;
  const first = await bed.launch({ workflows: [run], executorId: 'leaves', shutdownTimeout: 50 });
  const { id } = await start(first, () =>
    runTransaction('write', async () => {
      runs += 1;
      await query('INSERT INTO effect VALUES ($1)', [`run ${String(runs)}`]);
      if (runs === 1) {
        arrived.open();
        await new Promise(() => undefined);
      }
      return runs;
    }),
  );
  await arrived.opened;
  const second = await bed.launch({ workflows: [run], executorId: 'stays' });
  await first.close();
  expect(await second.handle(id).result()).toBe(2);
  expect(await effects()).toEqual(['run 2']);
  await second.close();
});

test.each([2, 5, 10])(
  'C55 transactions of 50 workflows on a pool of %i connections: all end, none loses its lease',
  async (max) => {
    const pool = new pg.Pool({ connectionString: bed.database.url, max });
    pool.on('error', () => undefined);
    const same = defineDataSource('same', pool);
    const holdfast = await bed.launch({ workflows: [run], database: pool, dataSources: [same] });
    let open = 0;
    let most = 0;
    scenario = (id) =>
      runTransaction(
        'write',
        async () => {
          most = Math.max(most, ++open);
          await query('INSERT INTO effect VALUES ($1)', [id]);
          await sleepFor(5);
          open -= 1;
        },
        Number(id) % 2 === 0 ? { dataSource: same } : {},
      ).then(() => runStep('after', () => Promise.resolve()));
    const handles = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        holdfast.start(run, { workflowId: `pool ${String(max)} ${String(n)}` }, String(n)),
      ),
    );
    await Promise.all(handles.map((handle) => handle.result()));
    expect(await effects()).toHaveLength(50);
    // Both names of the pool count together: the rest is left to heartbeats and checkpoints.
    expect(most).toBeLessThanOrEqual(Math.max(1, max - 3));
    const { rows } = await bed.sql.query<{ epoch: number }>(
      `SELECT max(epoch)::int AS epoch FROM holdfast.workflow_status WHERE workflow_id LIKE $1`,
      [`pool ${String(max)} %`],
    );
    expect(rows).toEqual([{ epoch: 1 }]);
    await holdfast.close();
    await pool.end();
  },
);

describe('adapters that misbehave', () => {
  /** What happens around one transaction. */
  interface Around {
    readonly beforeCommit?: (client: pg.PoolClient) => Promise<void>;
    readonly afterCommit?: () => void;
    /** How often the adapter tries by itself. */
    readonly tries?: number;
  }
  let around: (n: number) => Around = () => ({});
  let begun = 0;
  const adapter: DataSourceAdapter<pg.PoolClient> = {
    async transaction(body, { isolation }) {
      let failure: unknown;
      const here = around(++begun);
      for (let n = 0; n < (here.tries ?? 1); n++) {
        const client = await beside.connect();
        client.on('error', () => undefined);
        try {
          await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
          const result = await body(client);
          await here.beforeCommit?.(client);
          await client.query('COMMIT');
          here.afterCommit?.();
          client.release();
          return result;
        } catch (error) {
          failure = error;
          client.release(true);
        }
      }
      throw failure;
    },
    async query(client, statement, parameter) {
      return (await client.query<Record<string, unknown>>(statement, [parameter])).rows;
    },
  };
  const source = defineDataSource('odd', adapter);
  let holdfast: Holdfast;
  beforeAll(async () => {
    holdfast = await bed.launch({ workflows: [run], dataSources: [source] });
  });
  afterAll(() => holdfast.close());

  let runs = 0;
  async function write(more?: () => Promise<void>): Promise<unknown> {
    runs = 0;
    begun = 0;
    const { result } = await start(holdfast, () =>
      runTransaction(
        'write',
        async () => {
          const mine = ++runs;
          await transaction(source).client.query('INSERT INTO effect VALUES ($1)', [`run ${String(mine)}`]);
          await more?.();
          return mine;
        },
        { dataSource: source },
      ),
    );
    return result;
  }

  test('one that begins again by itself after a COMMIT whose reply was lost: it takes effect once', async () => {
    let isLost = false;
    around = () => ({
      tries: 3,
      afterCommit: () => {
        if (isLost) return;
        isLost = true;
        throw new Error('Connection terminated unexpectedly');
      },
    });
    expect(await write()).toBe(1);
    expect(await effects()).toEqual(['run 1']);
    expect(runs).toBe(1);
  });

  test('one that begins again by itself after a conflict: Holdfast begins again, once', async () => {
    around = (n) => ({
      tries: 2,
      beforeCommit: async (client) => {
        if (n === 1) await client.query("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$");
      },
    });
    expect(await write()).toBe(2);
    expect(await effects()).toEqual(['run 2']);
  });

  test.each(['the checkpoint', 'COMMIT'] as const)(
    'one whose connection breaks before %s, and that says so in words alone: the body runs again',
    async (before) => {
      const breakIt = async (client: pg.PoolClient): Promise<void> => {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        await bed.sql.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
        await waitUntil(
          async () =>
            (await bed.sql.query('SELECT FROM pg_stat_activity WHERE pid = $1', [rows[0]?.pid])).rowCount === 0,
          'it is gone',
        );
        await sleepFor(20);
      };
      around = (n) => ({
        beforeCommit: (client) => (n === 1 && before === 'COMMIT' ? breakIt(client) : Promise.resolve()),
      });
      const value = await write(() =>
        runs === 1 && before === 'the checkpoint' ? breakIt(transaction(source).client) : Promise.resolve(),
      );
      expect(value).toBe(2);
      expect(await effects()).toEqual(['run 2']);
    },
  );
});
