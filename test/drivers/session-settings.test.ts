import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { waitUntil } from '../support/launch.js';
import { canRunPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { setUpOwn } from '../../src/drivers/session.js';
import { DRIVER_KINDS } from './driver-kinds.js';
import { ServerActions } from './server-actions.js';

const hasPgBouncer = canRunPgBouncer();

/** A schema that shadows what a driver may call, and fails when it does. */
const TRAPS = `CREATE SCHEMA evil;
  CREATE FUNCTION evil.pg_backend_pid() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadowed'; END $$;
  CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadowed'; END $$;`;

interface Bed {
  readonly database: TestDatabase;
  readonly server: ServerActions;
  readonly bouncer: PgBouncer | undefined;
}

/** A database of the block's own, prepared by `prepare`, and a way there through PgBouncer where there is one. */
function useDatabase(prepare: (bed: Pick<Bed, 'database' | 'server'>) => Promise<unknown>): () => Bed {
  let bed: Bed;
  beforeAll(async () => {
    const database = await createTestDatabase();
    const server = await ServerActions.connect(database.url);
    await prepare({ database, server });
    bed = { database, server, bouncer: hasPgBouncer ? await startPgBouncer(database.url) : undefined };
  });
  afterAll(async () => {
    await bed.bouncer?.stop();
    await bed.server.close();
    await bed.database.drop();
  });
  return () => bed;
}

function throughBouncer({ database, bouncer }: Bed): string {
  return bouncer?.connectionString(database.url) ?? '';
}

describe('with hostile defaults of the database', () => {
  const bed = useDatabase(async ({ database, server }) => {
    await server.rows(TRAPS);
    await server.rows('CREATE TABLE public.item (id int4)');
    const settings = [
      "default_transaction_isolation = 'serializable'",
      'default_transaction_read_only = on',
      "timezone = 'Asia/Kathmandu'",
      'standard_conforming_strings = off',
      'search_path = evil, pg_catalog',
    ];
    for (const setting of settings) await server.rows(`ALTER DATABASE ${database.name} SET ${setting}`);
  });

  const routes = [
    { route: 'directly', url: () => bed().database.url },
    ...(hasPgBouncer ? [{ route: 'through PgBouncer', url: () => throughBouncer(bed()) }] : []),
  ];

  for (const kind of DRIVER_KINDS) {
    describe.each(routes)(`${kind.label} $route`, ({ url }) => {
      const readModes = `SELECT pg_catalog.current_setting('transaction_isolation') AS isolation,
        pg_catalog.current_setting('transaction_read_only') AS read_only`;
      const plain = [{ isolation: 'read committed', read_only: 'off' }];

      it('statements are read committed and may write, on every connection', async () => {
        const { driver, close } = await kind.open(url());
        const all = await Promise.all(Array.from({ length: 30 }, () => driver.query(readModes)));
        for (const rows of all) expect(rows).toEqual(plain);
        await Promise.all(
          Array.from({ length: 30 }, (_, n) =>
            driver.query('INSERT INTO public.item VALUES ($1::int4)', [n], { prepare: 'hostile' }),
          ),
        );
        expect(await driver.transaction((transaction) => transaction.query(readModes))).toEqual(plain);
        await close();
      });

      it('values arrive unchanged', async () => {
        const { driver, close } = await kind.open(url());
        const texts = ["\\'", '\\\\n', "''", '"'];
        expect(await driver.query('SELECT $1::text[] AS texts, $2::text AS t', [texts, "\\'"])).toEqual([
          { texts, t: "\\'" },
        ]);
        await close();
      });
    });
  }

  it('a pool of the caller keeps its sessions as they were', async () => {
    for (const kind of DRIVER_KINDS.filter(({ usesCallersSessions }) => usesCallersSessions)) {
      const { driver, close } = await kind.open(bed().database.url, { maxConnections: 1 });
      await driver.query('SELECT 1');
      const isolation = await driver.query(
        "SELECT pg_catalog.current_setting('default_transaction_isolation') AS isolation",
      );
      expect(isolation).toEqual([{ isolation: 'serializable' }]);
      await close();
    }
  });
});

describe('a statement that was given up', () => {
  const bed = useDatabase(({ server }) => server.rows('CREATE TABLE item (id int4)'));

  const readCheck = "SELECT current_setting('client_connection_check_interval') AS interval";
  const ownKinds = DRIVER_KINDS.filter(({ usesCallersSessions }) => !usesCallersSessions);

  it('does not go on at the server behind a lock that nobody gives back', async () => {
    const { database, server } = bed();
    const holder = await ServerActions.connect(database.url);
    await holder.rows('BEGIN');
    await holder.rows('LOCK TABLE item IN ACCESS EXCLUSIVE MODE');
    const waiting = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%item%'`;
    const drivers = await Promise.all(ownKinds.map((kind) => kind.open(database.url)));

    const reads = drivers.map(({ driver }) => driver.query('SELECT FROM item', [], { timeoutMs: 3_000 }));
    const given = Promise.allSettled(reads);
    await waitUntil(async () => (await server.rows(waiting)).length === drivers.length, 'all of them wait');
    for (const { status } of await given) expect(status).toBe('rejected');
    await waitUntil(async () => (await server.rows(waiting)).length === 0, 'none of them waits any more');

    await Promise.all(drivers.map(({ close }) => close()));
    await holder.close();
  });

  it('leaves an interval alone that somebody has chosen, and sessions that are not ours alone', async () => {
    const { database, server } = bed();
    for (const kind of DRIVER_KINDS) {
      const { driver, close } = await kind.open(database.url);
      const expected = kind.usesCallersSessions ? '0' : '10s';
      expect(await driver.query(readCheck), kind.label).toEqual([{ interval: expected }]);
      await close();
    }
    for (const kind of hasPgBouncer ? ownKinds : []) {
      const { driver, close } = await kind.open(throughBouncer(bed()));
      expect(await driver.query(readCheck), kind.label).toEqual([{ interval: '0' }]);
      await close();
    }
    await server.rows(`ALTER DATABASE ${database.name} SET client_connection_check_interval = '7s'`);
    for (const kind of DRIVER_KINDS) {
      const { driver, close } = await kind.open(database.url);
      expect(await driver.query(readCheck), kind.label).toEqual([{ interval: '7s' }]);
      await close();
    }
  });

  it('is not looked for where the operating system cannot tell, and nothing else is forgiven', async () => {
    const row = {
      pid: 1,
      isolation: 'read committed',
      read_only: 'off',
      connection_check: '0',
    };
    const refuse = (code: string) => () =>
      Promise.reject(Object.assign(new Error('refused'), { code, severity: 'ERROR' }));
    expect(await setUpOwn(row, 1, refuse('22023'))).toEqual({ isPooled: false, hasHostileDefaults: false });
    await expect(setUpOwn(row, 1, refuse('57P01'))).rejects.toMatchObject({ code: '57P01' });
  });
});
