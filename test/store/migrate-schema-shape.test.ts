import { readdir, readFile } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { migrateSchema } from '../../src/store/postgres/migrate.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const FUNCTIONS_DIR = new URL('../../sql/functions/', import.meta.url);
const MIGRATIONS_DIR = new URL('../../sql/migrations/', import.meta.url);

/** Refers to nothing but PostgreSQL's own, and is inlined where it is called, which a SET clause would prevent. */
const WITHOUT_SEARCH_PATH = ['clock'];
/** What each checkpoint writes to the hot row. */
const CHANGED_BY_CHECKPOINTS = ['record_version', 'updated_at'];

describe('what the protocol rests on in the schema', () => {
  let database: TestDatabase;
  let driver: Driver;
  beforeAll(async () => {
    database = await createTestDatabase();
    driver = await openDriver(database.url);
    await migrateSchema(driver, { schema: 'holdfast' });
  });
  afterAll(async () => {
    await driver.close();
    await database.drop();
  });

  it('every function has the search path of its schema fixed, and runs with the rights of its caller', async () => {
    const functions = await driver.query<{ name: string; is_definer: boolean; settings: string[] | null }>(
      `SELECT proname::text AS name, prosecdef AS is_definer, proconfig AS settings
         FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace`,
    );
    const files = await sqlFiles(FUNCTIONS_DIR);
    expect([...new Set(functions.map(({ name }) => name))].sort()).toEqual(files.map(({ name }) => name).sort());
    expect(functions.filter(({ is_definer: isDefiner }) => isDefiner)).toEqual([]);
    const unfixed = functions.filter(({ settings }) => settings?.includes('search_path=holdfast, pg_temp') !== true);
    expect(unfixed.map(({ name }) => name)).toEqual(WITHOUT_SEARCH_PATH);
    for (const { name, sql } of files) {
      if (!WITHOUT_SEARCH_PATH.includes(name)) expect(sql, name).toContain('SET search_path FROM CURRENT');
      expect(sql, name).not.toMatch(/SECURITY\s+DEFINER/i);
    }
  });

  it('no index on workflow_status covers a column that a checkpoint changes: as key, included, in an expression or a predicate', async () => {
    expect(await indexedColumns()).toEqual([]);
    await driver.query('CREATE INDEX probe ON holdfast.workflow_status (name) WHERE record_version > 5');
    expect(await indexedColumns()).toEqual([{ index: 'probe', column: 'record_version' }]);
    await driver.query('DROP INDEX holdfast.probe');
  });

  it('there is no foreign key and no trigger, so that the tables can be distributed by workflow_id', async () => {
    expect(
      await driver.query(
        `SELECT conname::text FROM pg_constraint WHERE connamespace = 'holdfast'::regnamespace AND contype = 'f'`,
      ),
    ).toEqual([]);
    expect(
      await driver.query(
        `SELECT tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
          WHERE c.relnamespace = 'holdfast'::regnamespace`,
      ),
    ).toEqual([]);
  });

  it('C57: no SQL depends on standard_conforming_strings, or on a schema by name', async () => {
    for (const { name, sql } of [...(await sqlFiles(FUNCTIONS_DIR)), ...(await sqlFiles(MIGRATIONS_DIR))]) {
      const code = sql.replaceAll(/--.*$/gm, '');
      expect(code, name).not.toContain('\\');
      expect(code, name).not.toMatch(/\bholdfast\.(?!clock_offset\b|transaction\b)/);
    }
  });

  it('every function body is valid: PostgreSQL accepts the functions with their bodies checked', async () => {
    await driver.transaction(async (transaction) => {
      await transaction.query('SET LOCAL search_path = holdfast, pg_temp; SET LOCAL check_function_bodies = on');
      for (const { sql } of await sqlFiles(FUNCTIONS_DIR)) await transaction.query(sql);
    });
  });

  /** The catalog has a dependency for each column that an index uses, wherever it uses it. */
  async function indexedColumns() {
    return driver.query(
      `SELECT ic.relname::text AS index, a.attname::text AS column
         FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
         JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
        WHERE i.indrelid = 'holdfast.workflow_status'::regclass AND a.attname = ANY ($1::text[])`,
      [CHANGED_BY_CHECKPOINTS],
    );
  }
});

async function sqlFiles(folder: URL): Promise<{ name: string; sql: string }[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
  return Promise.all(
    names.map(async (name) => ({ name: name.slice(0, -4), sql: await readFile(new URL(name, folder), 'utf8') })),
  );
}
