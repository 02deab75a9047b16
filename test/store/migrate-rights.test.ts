import { randomBytes } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { SchemaPermissionError } from '../../src/errors/schema-errors.js';
import { migrateSchema } from '../../src/store/postgres/migrate.js';
import { renderMigrationSql } from '../../src/store/postgres/migrate-render.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ADDITIVE_SECOND, FIRST, releaseOf, V1 } from './fixtures/releases.js';

describe('C59: a role without a right', () => {
  const schema = 'holdfast';
  /** Needs everything: an altered table, a new one, a new function. */
  const V2 = releaseOf({
    libraryVersion: '1.1.0',
    migrations: [FIRST, `${ADDITIVE_SECOND} CREATE TABLE second (n integer);`],
    answer: '1.1.0',
  });
  let database: TestDatabase;
  let administrator: Driver;
  let driver: Driver;
  let role: string;
  beforeEach(async () => {
    database = await createTestDatabase();
    administrator = await openDriver(database.url);
    // A name that has to be quoted. Roles belong to the whole server, so each test has its own.
    role = `Role "${randomBytes(6).toString('hex')}"`;
    const password = randomBytes(12).toString('hex');
    await administrator.query(`CREATE ROLE ${quoted(role)} LOGIN PASSWORD '${password}'`);
    driver = await openDriver(urlFor(role, password));
  });
  afterEach(async () => {
    await driver.close();
    await administrator.query(`DROP OWNED BY ${quoted(role)} CASCADE; DROP ROLE ${quoted(role)}`);
    await administrator.close();
    await database.drop();
  });

  it('to create a schema is told the GRANT on the database, which is all it needs', async () => {
    const { grants, message } = await refusal(() => migrateSchema(driver, { schema, files: V2 }));
    expect(grants).toEqual([`GRANT CREATE ON DATABASE "${database.name}" TO ${quoted(role)}`]);
    expect(message).toContain(grants[0]);
    await grant(grants);
    expect(await migrateSchema(driver, { schema, files: V2 })).toMatchObject({ applied: [1, 2] });
  });

  it('to create tables in a prepared schema is told the GRANT on the schema, and needs none on the database', async () => {
    await administrator.query('CREATE SCHEMA holdfast');
    const { grants } = await refusal(() => migrateSchema(driver, { schema, files: V2 }));
    expect(grants).toEqual([`GRANT USAGE, CREATE ON SCHEMA "holdfast" TO ${quoted(role)}`]);
    await grant(grants);
    expect(await migrateSchema(driver, { schema, files: V2 })).toMatchObject({ applied: [1, 2] });
  });

  it('to read what is applied is told the GRANTs for that, and can then work with a schema that others migrate', async () => {
    await migrateSchema(administrator, { schema, files: V2 });
    const first = await refusal(() => migrateSchema(driver, { schema, files: V2 }));
    expect(first.grants).toEqual([
      `GRANT USAGE ON SCHEMA "holdfast" TO ${quoted(role)}`,
      `GRANT SELECT ON "holdfast".migration TO ${quoted(role)}`,
    ]);
    await grant(first.grants);
    expect(await migrateSchema(driver, { schema, files: V2 })).toMatchObject({ applied: [] });
  });

  it("to change another role's tables is told to be granted that role", async () => {
    const owner = `Owner "${randomBytes(6).toString('hex')}"`;
    await administrator.query(`CREATE ROLE ${quoted(owner)}`);
    await administrator.query(`GRANT CREATE ON DATABASE ${database.name} TO ${quoted(owner)}`);
    // Rendered, since it is then one statement on one connection, which SET ROLE holds for.
    await administrator.query(
      `SET ROLE ${quoted(owner)}; ${await renderMigrationSql(schema, { files: V1 })} RESET ROLE`,
    );
    await grant([
      `GRANT USAGE, CREATE ON SCHEMA holdfast TO ${quoted(role)}`,
      `GRANT SELECT ON holdfast.migration TO ${quoted(role)}`,
    ]);
    try {
      const { grants } = await refusal(() => migrateSchema(driver, { schema, files: V2 }));
      expect(grants).toEqual([`GRANT ${quoted(owner)} TO ${quoted(role)}`]);
      await grant(grants);
      expect(await migrateSchema(driver, { schema, files: V2 })).toMatchObject({ applied: [2] });
    } finally {
      await administrator.query(`DROP OWNED BY ${quoted(owner)} CASCADE; DROP ROLE ${quoted(owner)}`);
    }
  });

  it('leaves nothing behind when a right is missing in the middle', async () => {
    await administrator.query(`GRANT CREATE ON DATABASE ${database.name} TO ${quoted(role)}`);
    await migrateSchema(driver, { schema, files: V1 });
    await administrator.query('ALTER TABLE holdfast.first OWNER TO CURRENT_USER');
    const { cause } = await refusal(() => migrateSchema(driver, { schema, files: V2 }));
    expect(cause).toMatchObject({ sqlState: '42501' });
    expect(await migrateSchema(administrator, { schema, files: V1, migrate: false })).toMatchObject({
      databaseVersion: 1,
      functions: 'current',
    });
  });

  async function refusal(work: () => Promise<unknown>): Promise<SchemaPermissionError> {
    const failure: unknown = await work().then(
      () => 'nothing was refused',
      (error: unknown) => error,
    );
    if (!(failure instanceof SchemaPermissionError)) throw failure;
    expect(failure.code).toBe('SCHEMA_PERMISSION_DENIED');
    return failure;
  }

  async function grant(statements: readonly string[]): Promise<void> {
    await administrator.query(statements.join('; '));
  }

  function urlFor(name: string, password: string): string {
    const url = new URL(database.url);
    url.username = encodeURIComponent(name);
    url.password = password;
    return url.href;
  }
});

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
