import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import pg from 'pg';
import type { Driver } from '../../src/drivers/driver.js';
import { createPgDriver } from '../../src/drivers/pg-driver.js';
import { createPostgresDriver } from '../../src/drivers/postgres-driver.js';
import { OwnServer } from '../campaigns/support/own-server.js';
import { releaseAsked } from '../campaigns/support/own-server-place.js';
import { nameAbsentStandbys } from '../campaigns/support/standby-setting.js';
import { waitUntil } from '../support/launch.js';

// A primary that waits for a synchronous standby which is not there: as after a failover that it does not know of.

let server: OwnServer;
beforeAll(async () => {
  server = await OwnServer.create({ release: releaseAsked(process.env), settings: { fsync: 'off' } });
  await server.query('CREATE TABLE written (n int)');
});
afterAll(() => server.close());

beforeEach(async () => {
  await nameAbsentStandbys(server, '');
  await server.query('TRUNCATE written');
});

/** Ends all waits for a standby, as an operator may. */
async function breakOff(how: 'pg_cancel_backend' | 'pg_terminate_backend'): Promise<number> {
  const rows = await server.query(`SELECT ${how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  return rows.length;
}

const LIBRARIES: readonly (readonly [string, (url: string) => Promise<Driver>])[] = [
  ['pg', (connectionString) => createPgDriver({ connectionString, maxConnections: 2, connectTimeoutMs: 1_000 })],
  [
    'postgres',
    (connectionString) => createPostgresDriver({ connectionString, maxConnections: 2, connectTimeoutMs: 1_000 }),
  ],
  [
    "a pool of 'pg'",
    async (connectionString) => {
      const pool = new pg.Pool({ connectionString, max: 2 });
      const driver = await createPgDriver({ pool, connectTimeoutMs: 1_000 });
      return { ...bound(driver), close: () => driver.close().then(() => pool.end()) };
    },
  ],
];

function bound(driver: Driver): Omit<Driver, 'close'> {
  return {
    name: driver.name,
    maxConnections: driver.maxConnections,
    query: driver.query.bind(driver),
    transaction: driver.transaction.bind(driver),
    listen: driver.listen.bind(driver),
  };
}

for (const [library, open] of LIBRARIES) {
  test(`${library}: a session on a primary that no standby follows any more is not used`, async () => {
    await nameAbsentStandbys(server, 'nobody');
    const driver = await open(server.url);
    await expect(driver.query('SELECT 1')).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    await breakOff('pg_terminate_backend');
    await driver.close();
  });

  for (const how of ['pg_cancel_backend', 'pg_terminate_backend'] as const) {
    test(`${library}: a commit whose wait for the standby ended by ${how} is a lost reply, and is not taken for an answer later`, async () => {
      const driver = await open(server.url);
      // Two sessions that were opened while all was well.
      await Promise.all([driver.query('SELECT pg_sleep(0.1)'), driver.query('SELECT pg_sleep(0.1)')]);
      await nameAbsentStandbys(server, 'nobody');
      const write = driver.query('INSERT INTO written VALUES ($1::int4)', [1]).catch((error: unknown) => error);
      await waitUntil(async () => (await breakOff(how)) > 0, 'the write waits for the standby');
      expect(await write).toMatchObject({ code: 'CONNECTION_LOST' });
      // The commit is visible now, and the standby has not got it: who looks through the other session must not see it.
      await expect(driver.query('SELECT n FROM written')).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
      await breakOff('pg_terminate_backend');
      await driver.close();
    });
  }
}

test('transactions: the same of a COMMIT', async () => {
  for (const [, open] of LIBRARIES) {
    await nameAbsentStandbys(server, '');
    const driver = await open(server.url);
    await driver.query('SELECT 1');
    await nameAbsentStandbys(server, 'nobody');
    const write = driver
      .transaction((transaction) => transaction.query('INSERT INTO written VALUES (2)'))
      .catch((error: unknown) => error);
    await waitUntil(async () => (await breakOff('pg_cancel_backend')) > 0, 'the COMMIT waits for the standby');
    expect(await write).toMatchObject({ code: 'CONNECTION_LOST' });
    await driver.close();
  }
});
