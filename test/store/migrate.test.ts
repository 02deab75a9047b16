import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { DatabaseError } from '../../src/errors/database-errors.js';
import { InvalidSchemaNameError, SchemaTooOldError } from '../../src/errors/schema-errors.js';
import { migrateSchema } from '../../src/store/postgres/migrate.js';
import { renderMigrationSql } from '../../src/store/postgres/migrate-render.js';
import { DRIVER_KINDS } from '../drivers/driver-kinds.js';
import { defaultSchema } from '../support/conditions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startPgProxyFor } from '../support/pg-proxy.js';
import { canRunPgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { observe } from './fixtures/observed-driver.js';
import { ADDITIVE_SECOND, FIRST, releaseOf, V1, V2 } from './fixtures/releases.js';

let database: TestDatabase;
let driver: Driver;
beforeEach(async () => {
  database = await createTestDatabase();
  driver = await openDriver(database.url);
});
afterEach(async () => {
  await driver.close();
  await database.drop();
});

describe('migrating', () => {
  it.each(DRIVER_KINDS)('$label: an empty database gets the whole schema', async (kind) => {
    const opened = await kind.open(database.url);
    onTestFinished(() => opened.close());
    const report = await migrateSchema(opened.driver, { schema: 'holdfast' });
    expect(report.applied).toEqual(Array.from({ length: report.libraryVersion }, (_, index) => index + 1));
    expect(report).toMatchObject({ databaseVersion: report.libraryVersion, functions: 'replaced' });
    expect(await registered('holdfast')).toBe(1);
  });

  it('when everything is up to date, it is exactly one SELECT, outside a transaction', async () => {
    await migrateSchema(driver, { schema: 'holdfast' });
    const sent: string[] = [];
    const observed = observe(driver, (text) => void sent.push(text));
    const report = await migrateSchema(observed, { schema: 'holdfast' });
    expect(sent).toEqual([expect.stringMatching(/^SELECT version, [^;]+ FROM "holdfast".migration$/)]);
    expect(report).toMatchObject({ applied: [], functions: 'current' });
  });

  it('each migration is a transaction of its own, which records it before it runs it', async () => {
    const sent: string[] = [];
    const observed = observe(driver, (text) => void sent.push(text.split(/[\n(]/, 1)[0] ?? ''));
    const files = releaseOf({ libraryVersion: '1.0.0', migrations: [FIRST, 'CREATE TABLE b ();'], answer: '1' });
    await migrateSchema(observed, { schema: 'holdfast', files });
    const marks = sent.filter((text) => /^(BEGIN|INSERT|CREATE TABLE (first|b) |CREATE OR)/.test(text));
    const insert = expect.stringMatching(/^INSERT INTO "holdfast".migration/) as string;
    expect(marks).toEqual(
      ['BEGIN', insert, 'CREATE TABLE first ', 'BEGIN', insert, 'CREATE TABLE b ', 'BEGIN', insert].concat(
        expect.stringMatching(/^CREATE OR REPLACE FUNCTION/) as string,
      ),
    );
  });

  it('a migration that fails leaves the ones before it, and nothing of itself', async () => {
    const broken = releaseOf({
      libraryVersion: '1.0.0',
      migrations: [FIRST, 'CREATE TABLE b (); SELECT 1/0;'],
      answer: '1',
    });
    const failure = await migrateSchema(driver, { schema: 'holdfast', files: broken }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DatabaseError);
    expect(failure).toMatchObject({ sqlState: '22012' });
    expect(await tablesOf('holdfast')).toEqual(['first', 'migration']);
    expect((await migrateSchema(driver, { schema: 'holdfast', files: V1 })).functions).toBe('replaced');
  });

  it('a commit whose reply was lost is found to have happened, and the migration goes on', async () => {
    const proxy = await startPgProxyFor(database.url);
    const through = await openDriver(proxy.connectionString(database.url));
    onTestFinished(async () => {
      await through.close();
      await proxy.close();
    });
    const commit = proxy.arm({ do: 'drop-reply' }, /^COMMIT/, { times: 2 });
    const report = await migrateSchema(through, { schema: 'holdfast', files: V2 });
    expect(commit.hits).toBe(2);
    expect(report).toMatchObject({ databaseVersion: 2, functions: 'replaced' });
  });

  it('a migration that has to wait for a table gives way to those behind it, and gets the table when it is free', async () => {
    const schema = defaultSchema();
    await migrateSchema(driver, { schema, files: V1 });
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    // The database is dropped before the connection is closed.
    reader.on('error', () => undefined);
    onTestFinished(() => reader.end());
    await reader.query('BEGIN; SELECT FROM holdfast.first');
    const tries: string[] = [];
    const observed = observe(driver, (text) => {
      if (text === ADDITIVE_SECOND && tries.push(text) === 2) void reader.query('COMMIT');
    });
    const report = await migrateSchema(observed, { schema, files: V2 });
    expect(report.applied).toEqual([2]);
    expect(tries).toHaveLength(2);
  });

  it('a process that freezes while it migrates is disconnected by the server, which frees the lock', async () => {
    const migration = `CREATE TABLE limits AS SELECT current_setting('idle_in_transaction_session_timeout') AS idle;`;
    const files = releaseOf({ libraryVersion: '1.0.0', migrations: [migration], answer: '1' });
    await migrateSchema(driver, { schema: 'holdfast', files });
    expect(await driver.query('SELECT idle FROM holdfast.limits')).toEqual([{ idle: '1min' }]);
  });

  it('C58: told not to migrate, it says what is missing and how to get it', async () => {
    const check = () => migrateSchema(driver, { schema: 'holdfast', files: V2, migrate: false });
    await expect(check()).rejects.toThrow(SchemaTooOldError);
    expect(await schemas()).not.toContain('holdfast');
    await migrateSchema(driver, { schema: 'holdfast', files: V1 });
    await expect(check()).rejects.toMatchObject({
      code: 'SCHEMA_TOO_OLD',
      versions: { databaseVersion: 1, libraryVersion: 2 },
      message: expect.stringContaining("renderMigrationSql('holdfast', { fromVersion: 1 })") as string,
    });
    await migrateSchema(driver, { schema: 'holdfast', files: V2 });
    expect((await check()).applied).toEqual([]);
  });

  it.runIf(canRunPgBouncer()).each(DRIVER_KINDS)(
    '$label: many migrate at once through PgBouncer in transaction mode',
    async (kind) => {
      const bouncer = await startPgBouncer(database.url);
      const opened = await Promise.all(
        Array.from({ length: 6 }, () => kind.open(bouncer.connectionString(database.url), { maxConnections: 2 })),
      );
      onTestFinished(async () => {
        await Promise.all(opened.map(({ close }) => close()));
        await bouncer.stop();
      });
      const reports = await Promise.all(opened.map((each) => migrateSchema(each.driver, { schema: 'holdfast' })));
      expect(reports.flatMap(({ applied }) => applied)).toHaveLength(reports[0]?.libraryVersion ?? -1);
      expect(reports.filter(({ functions }) => functions === 'replaced')).toHaveLength(1);
    },
  );
});

describe('the schema', () => {
  it.each(['holdfast', '_', 'user', 'select', 'a'.repeat(48)])('may be called %s', async (schema) => {
    await migrateSchema(driver, { schema });
    expect(await registered(schema)).toBe(1);
    expect((await migrateSchema(driver, { schema, migrate: false })).functions).toBe('current');
  });

  it.each([
    '',
    'Holdfast',
    '1a',
    'a-b',
    'a"b',
    'a.b',
    'ä',
    'a'.repeat(49),
    'pg_temp',
    'pg_holdfast',
    'information_schema',
    'a\n',
  ])('may not be called %j', async (schema) => {
    const failure = await migrateSchema(driver, { schema }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(InvalidSchemaNameError);
    await expect(renderMigrationSql(schema)).rejects.toThrow(InvalidSchemaNameError);
  });

  it('may be there already, empty', async () => {
    await driver.query('CREATE SCHEMA prepared');
    await migrateSchema(driver, { schema: 'prepared' });
    expect(await registered('prepared')).toBe(1);
  });

  it('can stand beside another one in the same database, each with functions that write to its own tables', async () => {
    await Promise.all([migrateSchema(driver, { schema: 'one' }), migrateSchema(driver, { schema: 'two' })]);
    await registered('one');
    await registered('one');
    expect(await registered('two')).toBe(1);
    expect(await driver.query('SELECT count(*)::int4 AS n FROM one.executor')).toEqual([{ n: 2 }]);
    expect(await driver.query('SELECT count(*)::int4 AS n FROM two.executor')).toEqual([{ n: 1 }]);
  });
});

describe('C57: settings of the role or database', () => {
  it('a hostile search_path changes neither where the schema is created nor what functions write to', async () => {
    await driver.query(`CREATE SCHEMA evil;
      CREATE TABLE evil.migration (version integer); CREATE TABLE evil.executor (executor_id text);
      CREATE FUNCTION evil.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
      CREATE FUNCTION evil.clock() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
      CREATE FUNCTION evil.to_regclass(text) RETURNS regclass LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
      CREATE FUNCTION evil.hashtextextended(text, bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
      CREATE FUNCTION evil.bigger(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
      CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, PROCEDURE = evil.bigger)`);
    await alterDatabase('search_path = evil, public, pg_catalog');
    await onFreshDriver(async (fresh) => {
      await migrateSchema(fresh, { schema: 'holdfast' });
      expect((await migrateSchema(fresh, { schema: 'holdfast' })).functions).toBe('current');
    });
    expect(await registered('holdfast')).toBe(1);
    expect(await tablesOf('evil')).toEqual(['executor', 'migration']);
  });

  it('a temporary table cannot take the place of one of ours', async () => {
    await migrateSchema(driver, { schema: 'holdfast' });
    await driver.transaction(async (transaction) => {
      await transaction.query('CREATE TEMPORARY TABLE executor (LIKE holdfast.executor)');
      await transaction.query(`SELECT holdfast.register_executor('e', '1', 1000, 'h', 1)::int4`);
    });
    expect(await driver.query('SELECT executor_id FROM holdfast.executor')).toEqual([{ executor_id: 'e' }]);
  });

  it.each([
    "default_transaction_isolation = 'serializable'",
    'default_transaction_read_only = on',
    'standard_conforming_strings = off',
    "TimeZone = 'Pacific/Kiritimati'",
    "DateStyle = 'German'",
    "statement_timeout = '400ms'",
    "lock_timeout = '1ms'",
  ])('%s: many still migrate at once', async (setting) => {
    await alterDatabase(setting);
    // Longer than the time limit, which is long enough for all else on a machine with much to do.
    // The lone backslash is a whole string only while standard_conforming_strings is on.
    const slow = `SELECT pg_sleep(0.5); CREATE TABLE slow AS SELECT '\\'::text AS backslash;`;
    const files = releaseOf({ libraryVersion: '1.0.0', migrations: [slow], answer: '1' });
    const reports = await Promise.all(
      Array.from({ length: 4 }, () => onFreshDriver((fresh) => migrateSchema(fresh, { schema: 'holdfast', files }))),
    );
    expect(reports.flatMap(({ applied }) => applied)).toEqual([1]);
    await onFreshDriver((fresh) => migrateSchema(fresh, { schema: 'other' }));
  });
});

describe('the rendered SQL', () => {
  it('makes the very schema that migrateSchema makes, and migrateSchema then finds nothing to do', async () => {
    await runScript(await renderMigrationSql('rendered'));
    expect(await migrateSchema(driver, { schema: 'rendered', migrate: false })).toMatchObject({ functions: 'current' });
    await migrateSchema(driver, { schema: 'migrated' });
    expect(await fingerprint('rendered')).toEqual(await fingerprint('migrated'));
  });

  it('applied to a schema that has it already changes nothing', async () => {
    await runScript(await renderMigrationSql('holdfast'));
    await expect(runScript(await renderMigrationSql('holdfast'))).rejects.toMatchObject({ code: '42P07' });
    expect(await migrateSchema(driver, { schema: 'holdfast', migrate: false })).toMatchObject({ functions: 'current' });
  });

  it('from a version on upgrades a schema of that version, and changes none of another one', async () => {
    await runScript(await renderMigrationSql('holdfast', { files: V1 }));
    await runScript(await renderMigrationSql('holdfast', { files: V2, fromVersion: 1 }));
    expect(await migrateSchema(driver, { schema: 'holdfast', files: V2, migrate: false })).toMatchObject({
      databaseVersion: 2,
    });
    const again = runScript(await renderMigrationSql('holdfast', { files: V2, fromVersion: 1 }));
    await expect(again).rejects.toMatchObject({ code: '23505' });
  });

  /** As `psql` would: not through a driver of ours. */
  async function runScript(text: string): Promise<void> {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  }
});

/** Registers an executor through the schema's function, and returns its incarnation. */
async function registered(schema: string): Promise<unknown> {
  const [row] = await driver.query(`SELECT "${schema}".register_executor('e', '1', 1000, 'h', 1)::int4 AS incarnation`);
  return row?.['incarnation'];
}

async function tablesOf(schema: string): Promise<string[]> {
  const rows = await driver.query<{ name: string }>(
    `SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1::name AND c.relkind = 'r' ORDER BY 1`,
    [schema],
  );
  return rows.map(({ name }) => name);
}

async function schemas(): Promise<string[]> {
  const rows = await driver.query<{ name: string }>('SELECT nspname::text AS name FROM pg_namespace');
  return rows.map(({ name }) => name);
}

/** What the catalog says of a schema's columns, constraints, indexes and functions, without the schema's name. */
async function fingerprint(schema: string): Promise<string[]> {
  const rows = await driver.query<{ line: string }>(
    `SELECT line FROM (
       SELECT format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                     c.reloptions) AS line
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
       UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = $1::regnamespace
       UNION ALL SELECT pg_get_indexdef(oid) FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'i'
       UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace
     ) AS everything ORDER BY line`,
    [schema],
  );
  return rows.map(({ line }) => line.replaceAll(new RegExp(`\\b${schema}\\b`, 'g'), '…')).sort();
}

async function alterDatabase(setting: string): Promise<void> {
  await driver.query(`ALTER DATABASE ${database.name} SET ${setting}`);
}

async function onFreshDriver<Result>(body: (fresh: Driver) => Promise<Result>): Promise<Result> {
  const fresh = await openDriver(database.url);
  try {
    return await body(fresh);
  } finally {
    await fresh.close();
  }
}
