import type pg from 'pg';
import type { TransactionSql } from 'postgres';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { defineWorkflow, runStep, runTransaction, transaction, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';

let bed: Bed;
let proxy: PgProxy;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());

async function query(text: string): Promise<void> {
  const { client } = transaction<pg.PoolClient | TransactionSql>();
  await ('unsafe' in client ? client.unsafe(text) : client.query(text));
}

beforeAll(async () => {
  bed = await createBed();
  proxy = await startPgProxyFor(bed.database.url);
  await bed.sql.query('CREATE TABLE effect (id text)');
});
afterAll(async () => {
  await bed.close();
  await proxy.close();
});
beforeEach(async () => {
  await bed.sql.query('TRUNCATE effect');
});

let count = 0;
async function start(
  holdfast: Holdfast,
  body: () => Promise<unknown>,
): Promise<{ result: Promise<unknown>; id: string }> {
  scenario = body;
  const id = `fault-${String(++count)}`;
  const handle = await holdfast.start(run, { workflowId: id });
  const result = handle.result();
  result.catch(() => undefined);
  return { result, id };
}
const effects = async () => (await bed.sql.query('SELECT id FROM effect')).rowCount;
const isCommit = /^COMMIT$/i;
/** The record, which `pg` gets in one packet with COMMIT. */
const isCheckpoint = /(?:checkpoint|conclude)_transaction/;

describe.each(['pg', 'postgres'] as const)('with %s', (library) => {
  let holdfast: Holdfast;
  let sql: postgres.Sql | undefined;
  beforeAll(async () => {
    const url = proxy.connectionString(bed.database.url);
    if (library === 'postgres') sql = postgres(url, { onnotice: () => undefined });
    holdfast = await bed.launch({ workflows: [run], database: sql ?? url });
  });
  afterAll(async () => {
    await holdfast.close();
    await sql?.end({ timeout: 1 });
  });

  const isOnePacket = library === 'pg';
  test.each([
    ['COMMIT is done and its reply is lost', isCommit, { do: 'drop-reply', reset: true }, 1],
    ['the connection breaks before COMMIT arrives', isCommit, { do: 'cut-before' }, 2],
    ['the connection breaks before the checkpoint arrives', isCheckpoint, { do: 'cut-before' }, 2],
    [
      'the connection breaks between the checkpoint and COMMIT',
      isCommit,
      { do: isOnePacket ? 'cut-inside' : 'cut-before' },
      2,
    ],
    [
      'the reply to the checkpoint is lost',
      isCheckpoint,
      { do: 'drop-reply', reset: true },
      isOnePacket ? 1 : undefined,
    ],
  ] as const)('C9 %s: it takes effect exactly once', async (_, statement, fault, expectedRuns) => {
    let runs = 0;
    const armed = gate<ReturnType<PgProxy['arm']>>();
    const { result, id } = await start(holdfast, async () => {
      const value = await runTransaction('write', async () => {
        runs += 1;
        if (runs === 1) armed.open(proxy.arm(fault, statement));
        await query(`INSERT INTO effect VALUES ('run ${String(runs)}')`);
        return runs;
      });
      return [value, await runStep('after', () => Promise.resolve('after'))];
    });
    expect(await result).toEqual([expectedRuns ?? runs, 'after']);
    expect((await armed.opened).hits).toBe(1);
    // Undefined: COMMIT may have arrived or not.
    expect(runs).toBe(expectedRuns ?? runs);
    expect(await effects()).toBe(1);
    const { rows } = await bed.sql.query(
      'SELECT epoch::int, attempts FROM holdfast.workflow_status WHERE workflow_id = $1',
      [id],
    );
    expect(rows).toEqual([{ epoch: 1, attempts: 1 }]);
  });
});

test('C9 a COMMIT that is swallowed on a connection that stays open: the idle timeout ends it, and the body runs again', async () => {
  const holdfast = await bed.launch({ workflows: [run], database: proxy.connectionString(bed.database.url) });
  let runs = 0;
  const { result } = await start(holdfast, () =>
    runTransaction(
      'write',
      async () => {
        runs += 1;
        if (runs === 1) proxy.arm({ do: 'black-hole' }, isCommit);
        await query("INSERT INTO effect VALUES ('a')");
        return runs;
      },
      { idleTimeout: 300 },
    ),
  );
  // On a machine that stands still for so long, the idle timeout ends other runs, too.
  expect(await result).toBe(runs);
  expect(runs).toBeGreaterThan(1);
  expect(await effects()).toBe(1);
  await holdfast.close();
}, 60_000);

test('fenced: an execution that lost its workflow while the body ran commits nothing, and the owner runs the body', async () => {
  const arrived = gate();
  const free = gate();
  let runs = 0;
  const first = await bed.launch({
    workflows: [run],
    executorId: 'tx first',
    lease: '60s',
    notifications: false,
    pollInterval: '1h',
  });
  const { result, id } = await start(first, () =>
    runTransaction('write', async () => {
      const mine = ++runs;
      await query(`INSERT INTO effect VALUES ('run ${String(mine)}')`);
      if (mine === 1) {
        arrived.open();
        await free.opened;
      }
      return mine;
    }),
  );
  await arrived.opened;
  await bed.expireLease('tx first');
  const second = await bed.launch({ workflows: [run], executorId: 'tx second' });
  // The open body does not hold up the takeover.
  await waitUntil(() => runs === 2, 'the new owner runs the body');
  expect(await second.handle(id).result()).toBe(2);
  free.open();
  expect(await result).toBe(2);
  expect((await bed.sql.query('SELECT id FROM effect')).rows).toEqual([{ id: 'run 2' }]);
  await first.close();
  await second.close();
});

test('C55 a pool of one connection, used up by transactions beside a parallel step: no wait for oneself', async () => {
  const { Pool } = (await import('pg')).default;
  const pool = new Pool({ connectionString: bed.database.url, max: 1 });
  pool.on('error', () => undefined);
  const holdfast = await bed.launch({ workflows: [run], database: pool, lease: '60s' });
  const recorded = gate();
  const { result } = await start(holdfast, () =>
    Promise.all([
      runTransaction('write', async () => {
        await query("INSERT INTO effect VALUES ('a')");
        recorded.open();
        await new Promise((resolve) => setTimeout(resolve, 50));
        return 1;
      }),
      runStep('beside', () => recorded.opened.then(() => 2)),
      runTransaction('another', () => query("INSERT INTO effect VALUES ('b')").then(() => 3)),
    ]),
  );
  expect(await result).toEqual([1, 2, 3]);
  expect(await effects()).toBe(2);
  await holdfast.close();
  await pool.end();
}, 60_000);

test('reconcile and atMostOnce on a transaction are refused at registration, and so are wrong options', () => {
  const refused = (options: object): unknown => {
    try {
      void runTransaction('x', () => Promise.resolve(), options);
    } catch (error) {
      return (error as { code: string }).code;
    }
    return undefined;
  };
  expect(refused({ reconcile: () => undefined })).toBe('REGISTRATION_INVALID');
  expect(refused({ atMostOnce: true })).toBe('REGISTRATION_INVALID');
  expect(refused({ isolation: 'read uncommitted' })).toBe('INVALID_ARGUMENT');
  expect(refused({ idleTimeout: 0 })).toBe('INVALID_ARGUMENT');
  expect(refused({ dataSource: 'app' })).toBe('INVALID_ARGUMENT');
  expect(refused({ retry: 1 })).toBe('INVALID_ARGUMENT');
});
