import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { SchemaChecksumMismatchError, SchemaFilesError } from '../../src/errors/schema-errors.js';
import { migrateSchema } from '../../src/store/postgres/migrate.js';
import { compareLibraryVersions } from '../../src/store/postgres/migrate-library-version.js';
import { loadSqlFiles, parseMigrations, type SqlFiles } from '../../src/store/postgres/sql-files.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ADDITIVE_SECOND, BREAKING_SECOND, FIRST, releaseOf, V1, V2, V2_BREAKING, V3 } from './fixtures/releases.js';

describe('releases that share a schema', () => {
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

  const migrate = (files: SqlFiles, migrateIt = true) =>
    migrateSchema(driver, { schema: 'holdfast', files, migrate: migrateIt });
  const answer = async () => (await driver.query('SELECT holdfast.release() AS answer'))[0]?.['answer'];

  it('a newer library applies what is missing, and replaces the functions', async () => {
    await migrate(V1);
    expect(await migrate(V3)).toEqual({
      databaseVersion: 3,
      libraryVersion: 3,
      applied: [2, 3],
      functions: 'replaced',
    });
    expect(await answer()).toBe('1.2.0');
  });

  it('a newer library with the same migrations replaces the functions only', async () => {
    await migrate(V1);
    const newer = releaseOf({ libraryVersion: '1.0.1', migrations: [FIRST], answer: '1.0.1' });
    expect(await migrate(newer)).toMatchObject({ applied: [], functions: 'replaced' });
    expect(await answer()).toBe('1.0.1');
  });

  it('C67: during a rolling deploy an older library goes on with the newer functions, as long as the change is additive', async () => {
    await migrate(V2);
    expect(await migrate(V1)).toEqual({ databaseVersion: 2, libraryVersion: 1, applied: [], functions: 'newer' });
    expect(await migrate(V1, false)).toMatchObject({ functions: 'newer' });
    expect(await answer()).toBe('1.1.0');
  });

  it('an older library is refused after a change that it cannot work with, and is told what to upgrade to', async () => {
    await migrate(V2_BREAKING);
    await expect(migrate(V1)).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
      versions: { databaseVersion: 2, libraryVersion: 1 },
      message: expect.stringContaining('2.0.0 or later') as string,
    });
    await expect(migrate(V1, false)).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
    expect(await answer()).toBe('2.0.0');
  });

  it('an older library may run only if every newer migration says so, not only the last one', async () => {
    await migrate(V3);
    expect(await migrate(V2)).toMatchObject({ functions: 'newer' });
    await expect(migrate(V1)).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
  });

  it('an older library does not put back its functions, also when both start at once again and again', async () => {
    for (let round = 0; round < 5; round++) {
      await driver.query('DROP SCHEMA IF EXISTS holdfast CASCADE');
      await Promise.all([V1, V2, V1, V2, V1, V2].map((files) => migrate(files)));
      expect(await answer()).toBe('1.1.0');
      expect(await migrate(V2, false)).toMatchObject({ databaseVersion: 2, functions: 'current' });
    }
  });

  it('functions that a killed newer library did not get to replace do not stop an older one', async () => {
    await migrate(V2);
    await driver.query('DELETE FROM holdfast.migration WHERE version = 0; DROP FUNCTION holdfast.release()');
    expect(await migrate(V1)).toMatchObject({ databaseVersion: 2, functions: 'replaced' });
    expect(await migrate(V2)).toMatchObject({ functions: 'replaced' });
    expect(await answer()).toBe('1.1.0');
  });

  it('told not to migrate, a newer library refuses functions of an older one', async () => {
    await migrate(V1);
    const newer = releaseOf({ libraryVersion: '1.0.1', migrations: [FIRST], answer: '1.0.1' });
    await expect(migrate(newer, false)).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' });
  });

  it('an applied migration never changes: another text under its number is refused, whoever is the newer one', async () => {
    await migrate(V2);
    for (const files of [
      releaseOf({ libraryVersion: '9.0.0', migrations: [`${FIRST}\n`, ADDITIVE_SECOND], answer: '9.0.0' }),
      releaseOf({ libraryVersion: '0.1.0', migrations: [`${FIRST} --`], answer: '0.1.0' }),
    ]) {
      await expect(migrate(files)).rejects.toThrow(SchemaChecksumMismatchError);
      await expect(migrate(files)).rejects.toMatchObject({ code: 'SCHEMA_CHECKSUM_MISMATCH' });
    }
    expect(await answer()).toBe('1.1.0');
  });

  it('a record of migrations with a hole in it is refused', async () => {
    await migrate(V2);
    await driver.query('DELETE FROM holdfast.migration WHERE version = 1');
    await expect(migrate(V3)).rejects.toMatchObject({ code: 'SCHEMA_CHECKSUM_MISMATCH' });
  });
});

describe('SQL files', () => {
  it('those of the package are numbered without gaps, and each has a checksum', async () => {
    const files = await loadSqlFiles();
    expect(files.migrations.map(({ version }) => version)).toEqual(files.migrations.map((_, index) => index + 1));
    expect(new Set(files.migrations.map(({ checksum }) => checksum)).size).toBe(files.migrations.length);
    expect(files.functions.sql).toContain('CREATE OR REPLACE FUNCTION');
    expect(files.libraryVersion).toMatch(/^\d+\.\d+\.\d+/);
  });

  it('no migration takes functions away: executors call them until they are replaced, which a killed process may leave undone', async () => {
    const { migrations } = await loadSqlFiles();
    const takeAway = migrations.filter(({ sql }) => /^\s*DROP\s+(FUNCTION|PROCEDURE|ROUTINE)/im.test(sql));
    // Two from before the first release.
    expect(takeAway.map(({ version }) => version)).toEqual([4, 10]);
  });

  it.each([
    ['a gap', ['0001_a.sql', '0003_b.sql']],
    ['a number twice', ['0001_a.sql', '0001_b.sql']],
    ['another start', ['0000_a.sql']],
    ['a name of another form', ['1_a.sql']],
  ])('%s is refused', (_what, names) => {
    expect(() => parseMigrations(names.map((fileName) => ({ fileName, sql: '' })))).toThrow(SchemaFilesError);
  });

  it('a migration is compatible with what its header says, and with nothing older without one', () => {
    const read = (sql: string) =>
      parseMigrations([
        { fileName: '0001_a.sql', sql: '' },
        { fileName: '0002_b.sql', sql },
      ]);
    expect(read(ADDITIVE_SECOND)[1]?.compatibleWith).toBe(1);
    expect(read(BREAKING_SECOND)[1]?.compatibleWith).toBe(2);
    expect(read('SELECT 1;\n-- compatible-with: 1')[1]?.compatibleWith).toBe(2);
    expect(() => read('-- compatible-with: 3')).toThrow(SchemaFilesError);
    expect(() => read('-- compatible-with: 0')).toThrow(SchemaFilesError);
  });

  it('a package without SQL files is refused by name', async () => {
    await expect(loadSqlFiles('/nowhere')).rejects.toMatchObject({ code: 'SCHEMA_FILES_INVALID' });
  });
});

it('versions of the library are ordered as Semantic Versioning orders them', () => {
  const ascending = [
    '0.9.10',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0',
    '1.0.1',
    '1.10.0',
    '10.0.0',
  ];
  for (const [index, version] of ascending.entries()) {
    for (const [otherIndex, other] of ascending.entries()) {
      expect(Math.sign(compareLibraryVersions(version, other))).toBe(Math.sign(index - otherIndex));
    }
  }
  expect(compareLibraryVersions('1.0.0+build', '1.0.0')).toBe(0);
});
