import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

import type { Driver, SqlExecutor } from '../../src/drivers/driver.js';
import { pickFreePort } from '../../src/drivers/embedded-port.js';
import { startEmbeddedPostgres } from '../../src/drivers/embedded-postgres.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { checkServer, type ServerWarning } from '../../src/store/postgres/server-checks.js';
import { DRIVER_KINDS } from '../drivers/driver-kinds.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { observe } from './fixtures/observed-driver.js';

/** What a sound server answers. */
const SOUND = {
  version_number: 150_014,
  version: '15.14',
  is_standby: false,
  read_only: 'off',
  configured_read_only: 'off',
  isolation: 'read committed',
  synchronous_commit: 'on',
  standby_names: '',
  fsync: 'on',
  full_page_writes: 'on',
  encoding: 'UTF8',
  search_path: '"$user", public',
} as const;

/** A server that answers what it is told to. */
function fake(settings: Partial<Record<keyof typeof SOUND, unknown>> = {}): SqlExecutor {
  return { query: async <Row>() => [{ ...SOUND, ...settings } as Row] };
}

const codesOf = (warnings: readonly ServerWarning[]) => warnings.map(({ code }) => code);

describe('C58: what the server answers', () => {
  it('a sound server passes without a warning', async () => {
    expect(await checkServer(fake())).toEqual({ version: '15.14', majorVersion: 15, warnings: [] });
  });

  it.each([
    ['a server too old', { version_number: 140_019, version: '14.19' }, 'DATABASE_TOO_OLD', '15 or later'],
    ['a server much too old', { version_number: 90_624, version: '9.6.24' }, 'DATABASE_TOO_OLD', '9.6.24'],
    ['a standby', { is_standby: true, read_only: 'on' }, 'DATABASE_IS_REPLICA', 'primary'],
    ['a server that takes no writes', { read_only: 'on' }, 'DATABASE_READ_ONLY', 'full disk'],
    ['another encoding', { encoding: 'SQL_ASCII' }, 'DATABASE_ENCODING_UNSUPPORTED', 'UTF8'],
    ['asynchronous commit', { synchronous_commit: 'off' }, 'SYNCHRONOUS_COMMIT_OFF', 'allowAsynchronousCommit'],
  ])('%s is refused by name, with the remedy', async (_what, settings, code, remedy) => {
    await expect(checkServer(fake(settings))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(remedy) as string,
    });
  });

  it.each([
    [{ fsync: 'off' }, ['FSYNC_OFF']],
    [{ full_page_writes: 'off' }, ['FULL_PAGE_WRITES_OFF']],
    [{ synchronous_commit: 'local', standby_names: 'ANY 1 (a, b)' }, ['COMMIT_SKIPS_STANDBY']],
    [{ synchronous_commit: 'local' }, []],
    [{ synchronous_commit: 'remote_write' }, []],
    [{ configured_read_only: 'on' }, ['READ_ONLY_OVERRIDDEN']],
    [{ isolation: 'serializable' }, ['ISOLATION_NOT_READ_COMMITTED']],
    [{ search_path: 'evil, "pg_catalog"' }, ['SEARCH_PATH_HIDES_CATALOG']],
    [{ search_path: 'pg_catalog, public' }, []],
    [{ search_path: '' }, []],
    [{ fsync: 'off', isolation: 'repeatable read' }, ['FSYNC_OFF', 'ISOLATION_NOT_READ_COMMITTED']],
  ])('%j is reported as %j', async (settings, codes) => {
    expect(codesOf((await checkServer(fake(settings))).warnings)).toEqual(codes);
  });

  it('asynchronous commit can be accepted, and is then reported', async () => {
    const { warnings } = await checkServer(fake({ synchronous_commit: 'off' }), { allowAsynchronousCommit: true });
    expect(codesOf(warnings)).toEqual(['ASYNCHRONOUS_COMMIT']);
  });
});

describe('on a real server', () => {
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

  it('the check is one statement', async () => {
    const sent: string[] = [];
    const report = await checkServer(observe(driver, (text) => void sent.push(text)));
    expect(sent).toHaveLength(1);
    expect(report.majorVersion).toBeGreaterThanOrEqual(15);
    expect(report.version).toMatch(new RegExp(`^${report.majorVersion}\\.`));
  });

  it('C58: synchronous_commit = off of the database is refused', async () => {
    await alterDatabase('synchronous_commit = off');
    await expect(check()).rejects.toMatchObject({ code: 'SYNCHRONOUS_COMMIT_OFF' });
  });

  it('C57: an encoding that cannot hold every text is refused, by each client library', async () => {
    const name = `${database.name}_latin1`;
    await driver.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    try {
      for (const kind of DRIVER_KINDS) {
        const opened = await kind.open(url.href);
        await expect(checkServer(opened.driver)).rejects.toMatchObject({ code: 'DATABASE_ENCODING_UNSUPPORTED' });
        await opened.close();
      }
    } finally {
      await driver.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });

  describe.each(DRIVER_KINDS)('$label', (kind) => {
    it.each(['serializable', 'repeatable read'])(
      "C57: default_transaction_isolation = '%s' is harmless, since the driver overrides it",
      async (isolation) => {
        await alterDatabase(`default_transaction_isolation = '${isolation}'`);
        expect(codesOf((await check(kind)).warnings)).not.toContain('ISOLATION_NOT_READ_COMMITTED');
      },
    );

    it('C57: default_transaction_read_only is overridden, and reported', async () => {
      await alterDatabase('default_transaction_read_only = on');
      expect(codesOf((await check(kind)).warnings)).toContain('READ_ONLY_OVERRIDDEN');
    });

    it('C57: a search_path that hides the catalog does not mislead the check, and is reported', async () => {
      await driver.query(`CREATE SCHEMA evil;
        CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, PROCEDURE = evil.same);
        CREATE VIEW evil.pg_settings AS SELECT 'on'::text AS reset_val, ''::text AS name`);
      await alterDatabase('search_path = evil, pg_catalog');
      const codes = codesOf((await check(kind)).warnings);
      expect(codes).toContain('SEARCH_PATH_HIDES_CATALOG');
      expect(codes).not.toContain('READ_ONLY_OVERRIDDEN');
    });
  });

  async function alterDatabase(setting: string): Promise<void> {
    await driver.query(`ALTER DATABASE ${database.name} SET ${setting}`);
  }

  async function check(kind = DRIVER_KINDS[0]) {
    if (kind === undefined) throw new Error('no driver');
    const fresh = await kind.open(database.url);
    try {
      return await checkServer(fresh.driver);
    } finally {
      await fresh.close();
    }
  }
});

it('C58: a standby is refused until it has been promoted', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-standby-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  await (await startEmbeddedPostgres({ dataDir })).stop();
  await writeFile(join(dataDir, 'cluster', 'standby.signal'), '');
  const port = await pickFreePort();
  // Counts as started once it takes writes.
  const starting = startEmbeddedPostgres({ dataDir, port });
  const driver = await openDriver(`postgresql://postgres@127.0.0.1:${port}/postgres`);
  onTestFinished(() => driver.close());
  try {
    await expect(whenReachable(() => checkServer(driver))).rejects.toMatchObject({ code: 'DATABASE_IS_REPLICA' });
  } finally {
    await driver.query('SELECT pg_promote()').catch(() => undefined);
    const server = await starting;
    onTestFinished(() => server.stop());
  }
  expect(await checkServer(driver)).toMatchObject({ warnings: [] });
});

async function whenReachable<Result>(work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (code !== 'CONNECTION_UNAVAILABLE' || performance.now() > deadline) throw error;
      await pause(50);
    }
  }
}
