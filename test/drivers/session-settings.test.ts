import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { canRunPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { DRIVER_KINDS } from './driver-kinds.js';
import { ServerActions } from './server-actions.js';

const hasPgBouncer = canRunPgBouncer();

/** A schema that shadows what a driver may call, and fails when it does. */
const TRAPS = `CREATE SCHEMA evil;
  CREATE FUNCTION evil.pg_backend_pid() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadowed'; END $$;
  CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadowed'; END $$;`;

describe('with hostile defaults of the database', () => {
  let database: TestDatabase;
  let server: ServerActions;
  let bouncer: PgBouncer | undefined;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await ServerActions.connect(database.url);
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
    bouncer = hasPgBouncer ? await startPgBouncer(database.url) : undefined;
  });
  afterAll(async () => {
    await bouncer?.stop();
    await server.close();
    await database.drop();
  });

  const routes = [
    { route: 'directly', url: () => database.url },
    ...(hasPgBouncer ? [{ route: 'through PgBouncer', url: () => bouncer?.connectionString(database.url) ?? '' }] : []),
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
      const { driver, close } = await kind.open(database.url, { maxConnections: 1 });
      await driver.query('SELECT 1');
      const isolation = await driver.query(
        "SELECT pg_catalog.current_setting('default_transaction_isolation') AS isolation",
      );
      expect(isolation).toEqual([{ isolation: 'serializable' }]);
      await close();
    }
  });
});
