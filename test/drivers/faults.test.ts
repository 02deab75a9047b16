import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { Driver, DriverTransaction } from '../../src/drivers/driver.js';
import type { DriverOptions } from '../../src/drivers/driver-options.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type PgProxy, startPgProxyFor } from '../support/pg-proxy.js';
import { DRIVER_KINDS, type OpenedDriver } from './driver-kinds.js';
import { ServerActions } from './server-actions.js';

const LOST = { code: 'CONNECTION_LOST' };
const UNAVAILABLE = { code: 'CONNECTION_UNAVAILABLE' };
const INSERT = 'INSERT INTO item VALUES ($1::text)';

describe.each(DRIVER_KINDS)('$label', (kind) => {
  let database: TestDatabase;
  let server: ServerActions;
  let proxy: PgProxy;
  let opened: OpenedDriver[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await ServerActions.connect(database.url);
    await server.rows('CREATE TABLE item (id text PRIMARY KEY)');
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });
  beforeEach(async () => {
    await server.rows('TRUNCATE item');
    proxy = await startPgProxyFor(database.url);
  });
  afterEach(async () => {
    await Promise.all(opened.map(({ close }) => close()));
    opened = [];
    await proxy.close();
  });

  const open = async (options: DriverOptions = {}): Promise<Driver> => {
    const result = await kind.open(proxy.connectionString(database.url), options);
    opened.push(result);
    return result.driver;
  };
  const items = async () => (await server.rows('SELECT id FROM item ORDER BY id')).map((row) => row['id']);
  const insertInTransaction = (driver: Driver, id: string) =>
    driver.transaction((transaction) => transaction.query(INSERT, [id]).then(() => undefined));

  it('a lost reply to COMMIT is an unknown outcome, and the transaction did take effect', async () => {
    const driver = await open();
    const fault = proxy.arm({ do: 'drop-reply' }, /^COMMIT/);
    await expect(insertInTransaction(driver, 'a')).rejects.toMatchObject(LOST);
    await fault.happened;
    expect(await items()).toEqual(['a']);
    await insertInTransaction(driver, 'b');
    expect(await items()).toEqual(['a', 'b']);
  });

  it('a COMMIT that never reached the server is an unknown outcome, and the transaction did not take effect', async () => {
    const driver = await open();
    proxy.arm({ do: 'cut-before', reset: true }, /^COMMIT/);
    await expect(insertInTransaction(driver, 'a')).rejects.toMatchObject(LOST);
    expect(await items()).toEqual([]);
  });

  it.each([
    { how: 'prepared', options: { prepare: 'insert' } },
    { how: 'unprepared', options: {} },
  ])('a lost reply to a $how statement is an unknown outcome, and it is not sent again', async ({ options }) => {
    const driver = await open();
    await driver.query(INSERT, ['first'], options);
    const fault = proxy.arm({ do: 'drop-reply' }, /^INSERT/);
    await expect(driver.query(INSERT, ['a'], options)).rejects.toMatchObject(LOST);
    expect(fault.hits).toBe(1);
    expect(await items()).toEqual(['a', 'first']);
    await driver.query(INSERT, ['b'], options);
  });

  it('a connection that swallows everything is destroyed when time is up, and another one is used', async () => {
    const driver = await open({ maxConnections: 1 });
    await driver.query('SELECT 1');
    proxy.arm({ do: 'black-hole' }, /^INSERT/);
    await expect(driver.query(INSERT, ['a'], { timeoutMs: 100 })).rejects.toMatchObject(LOST);
    await proxy.waitFor(({ open: count }) => count === 0);
    await driver.query(INSERT, ['b']);
    expect(await items()).toEqual(['b']);
    expect(proxy.counters.connections).toBe(2);
  });

  it('when one connection carries nothing any more, free ones that have answered nothing since are not used', async () => {
    if (kind.usesCallersSessions) return;
    const driver = await open({ maxConnections: 4 });
    await Promise.all(Array.from({ length: 4 }, () => driver.query('SELECT pg_sleep(0.1)')));
    expect(proxy.counters.open).toBe(4);
    proxy.blackHoleAll();
    await expect(driver.query(INSERT, ['a'], { timeoutMs: 100 })).rejects.toMatchObject(LOST);
    // Each of the others would swallow a statement for its whole time limit, one after the other.
    await driver.query(INSERT, ['b']);
    expect(await items()).toEqual(['b']);
    expect(proxy.counters.connections).toBe(5);
  });

  it.each(['closed-at-once', 'silent'] as const)(
    'who is urgent gets the connection that comes free while another one cannot be opened (%s)',
    async (admission) => {
      if (kind.usesCallersSessions) return;
      const driver = await open({ maxConnections: 3 });
      let urgent: Promise<unknown> | undefined;
      await driver.transaction(async (transaction) => {
        await transaction.query('SELECT 1');
        await proxy.admit(admission);
        const { turnedAway } = proxy.counters;
        urgent = driver.query('SELECT 1 AS n', [], { isUrgent: true });
        // What it fails with is looked at below.
        urgent.catch(() => undefined);
        await proxy.waitFor((counters) => counters.turnedAway > turnedAway);
      });
      expect(await urgent).toEqual([{ n: 1 }]);
      if (admission === 'closed-at-once') {
        // Where there is none that could come free, there is nothing to wait for.
        proxy.cutAll();
        await proxy.waitFor(({ open: count }) => count === 0);
        const last = driver.query('SELECT 1', [], { isUrgent: true });
        await expect(last).rejects.toMatchObject({ code: expect.stringMatching(/^CONNECTION_/) as string });
      }
      await proxy.admit('open');
      expect(await driver.query('SELECT 1 AS n', [], { isUrgent: true })).toEqual([{ n: 1 }]);
    },
  );

  it('a late reply to a statement that was given up reaches nobody', async () => {
    const driver = await open({ maxConnections: 1 });
    await driver.query('SELECT 1');
    proxy.arm({ do: 'delay', delayMs: 200 }, /late/);
    const attempt = driver.query("SELECT 'late' AS v", [], { timeoutMs: 50 });
    await expect(attempt).rejects.toMatchObject(LOST);
    for (let n = 0; n < 20; n++) expect(await driver.query('SELECT $1::int4 AS n', [n])).toEqual([{ n }]);
  });

  it('a transaction whose statement was given up is lost, and its connection is destroyed', async () => {
    const driver = await open({ maxConnections: 1 });
    await driver.query('SELECT 1');
    proxy.arm({ do: 'black-hole' }, /pg_sleep/);
    const attempt = driver.transaction(async (transaction) => {
      await transaction.query(INSERT, ['a']);
      await transaction.query('SELECT pg_sleep(0)', [], { timeoutMs: 100 }).catch(() => undefined);
    });
    await expect(attempt).rejects.toMatchObject(LOST);
    await proxy.waitFor(({ open: count }) => count === 0);
    expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    expect(await items()).toEqual([]);
  });

  it('a body that goes on after its connection broke changes nothing and ends no process', async () => {
    const driver = await open({ maxConnections: 1 });
    let ended: Promise<unknown> | undefined;
    const body = async (transaction: DriverTransaction) => {
      await transaction.query(INSERT, ['a']);
      await server.killOthers();
      await proxy.waitFor(({ open: count }) => count === 0);
      const client = transaction.client as Record<'query' | 'unsafe', (text: string) => Promise<unknown>>;
      const sent = kind.library === 'pg' ? client.query("INSERT INTO item VALUES ('b')") : client.unsafe('SELECT 1');
      await expect(sent).rejects.toThrow();
      for (let n = 0; n < 3; n++) {
        const late = transaction.query(INSERT, ['c']);
        await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/^CONNECTION_/) as string });
      }
    };
    const attempt = driver.transaction((transaction) => {
      const running = body(transaction);
      ended = running;
      return running;
    });
    await expect(attempt).rejects.toMatchObject(LOST);
    await ended;
    await driver.query('SELECT 1');
    expect(await items()).toEqual([]);
  });

  it('statements that wait for their turn in a transaction are settled when its connection breaks', async () => {
    const driver = await open({ maxConnections: 1 });
    proxy.arm({ do: 'cut-before' }, /'cut'/);
    let outcomes: Promise<PromiseSettledResult<unknown>[]> | undefined;
    const attempt = driver.transaction(async (transaction) => {
      await transaction.query('SELECT 1');
      const texts = ["'cut'", "'next'", "'last'"];
      outcomes = Promise.allSettled(texts.map((text) => transaction.query(`SELECT ${text} AS v, $1::text`, ['x'])));
      for (const outcome of await outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    });
    await expect(attempt).rejects.toMatchObject(LOST);
    expect((await outcomes)?.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });

  it('a transaction that stays idle too long is ended by the server, and changes nothing', async () => {
    const driver = await open();
    await driver.query('SELECT 1');
    const attempt = driver.transaction(
      async (transaction) => {
        await transaction.query(INSERT, ['a']);
        await proxy.waitFor(({ open: count }) => count === 0);
      },
      { idleTimeoutMs: 50 },
    );
    await expect(attempt).rejects.toMatchObject(LOST);
    expect(await items()).toEqual([]);
  });

  it.each([
    { what: 'refuses connections', admission: 'refused' },
    { what: 'closes connections at once', admission: 'closed-at-once' },
    { what: 'accepts connections and says nothing', admission: 'silent' },
  ] as const)('nothing was sent to a server that $what, and the driver recovers', async ({ admission }) => {
    const driver = await open({ connectTimeoutMs: 300, maxConnections: 2 });
    await proxy.admit(admission);
    const attempts = Array.from({ length: 5 }, () => driver.query(INSERT, ['a']));
    for (const attempt of attempts) void attempt.catch(() => undefined);
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject(UNAVAILABLE);
    expect(await items()).toEqual([]);
    await proxy.admit('open');
    // Under load a connection may take longer than the limit of this test.
    await expect
      .poll(() => driver.query('SELECT 1 AS n').catch(() => undefined), { timeout: 10_000 })
      .toEqual([{ n: 1 }]);
  });

  it('a connection that goes silent while it is being set up takes up no place in the pool', async () => {
    const driver = await open({ connectTimeoutMs: 500, maxConnections: 1 });
    proxy.arm({ do: 'black-hole' }, /pg_backend_pid/);
    await expect(driver.query('SELECT 1', [], { timeoutMs: 200 })).rejects.toMatchObject(UNAVAILABLE);
    await expect
      .poll(() => driver.query('SELECT 1 AS n').catch(() => undefined), { timeout: 10_000 })
      .toEqual([{ n: 1 }]);
    await proxy.waitFor(({ open: count }) => count === 1);
  });

  it('a connection that breaks at any point of its setup ends no process', async () => {
    for (let step = 1; step <= 4; step++) {
      const { driver, close } = await kind.open(proxy.connectionString(database.url));
      let statements = 0;
      const fault = proxy.arm({ do: 'cut-before', reset: true }, () => ++statements === step);
      await driver.query("SELECT 'first'").catch(() => undefined);
      fault.disarm();
      expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
      await close();
    }
  });

  it('a server that refuses the session says why', async () => {
    const url = new URL(proxy.connectionString(database.url));
    url.pathname = '/no_such_database';
    const { driver, close } = await kind.open(url.href);
    await expect(driver.query('SELECT 1')).rejects.toMatchObject({ ...UNAVAILABLE, sqlState: '3D000' });
    await close();
  });

  it('messages that arrive byte by byte are understood', async () => {
    const driver = await open();
    proxy.fragment(3);
    const texts = ['a', '😀'.repeat(50), '"\\,', ''];
    for (let round = 0; round < 3; round++) {
      expect(await driver.query('SELECT $1::text[] AS texts', [texts], { prepare: 'bytes' })).toEqual([{ texts }]);
      await insertInTransaction(driver, `byte ${round}`);
    }
    expect(await items()).toHaveLength(3);
  });
});
