import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { build } from 'vite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { migrateSchema, type MigrationReport } from '../../src/store/postgres/migrate.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FIRST, releaseOf, THIRD } from './fixtures/releases.js';

const PROCESSES = 20;
const FIXTURE = fileURLToPath(new URL('./fixtures/migrate-process.ts', import.meta.url));
/** Ignored by git, and inside the package, so that what is bundled there finds the package's SQL files as a user's bundle does. */
const BUNDLES = fileURLToPath(new URL('../../.holdfast/', import.meta.url));

describe('C59: processes that migrate', () => {
  let database: TestDatabase;
  let driver: Driver;
  let bundle: string;
  beforeAll(async () => {
    // Compiling the fixture in each of the twenty processes would take far longer than the migration.
    await mkdir(BUNDLES, { recursive: true });
    bundle = await mkdtemp(join(BUNDLES, 'migrate-'));
    const output = { entryFileNames: 'main.mjs' };
    await build({
      configFile: false,
      logLevel: 'error',
      build: { ssr: FIXTURE, outDir: bundle, target: 'node20', rollupOptions: { output } },
    });
  });
  afterAll(() => rm(bundle, { recursive: true, force: true }));
  beforeEach(async () => {
    database = await createTestDatabase();
    driver = await openDriver(database.url);
  });
  afterEach(async () => {
    await driver.close();
    await database.drop();
  });

  it('twenty processes migrate an empty database at once: each migration is applied once, and all of them succeed', async () => {
    const processes = await Promise.all(Array.from({ length: PROCESSES }, () => startMigrator('holdfast')));
    for (const process of processes) process.go();
    const reports = await Promise.all(processes.map((process) => process.report()));
    const { libraryVersion } = reports[0] as MigrationReport;
    expect(reports.map(({ databaseVersion }) => databaseVersion)).toEqual(reports.map(() => libraryVersion));
    expect(reports.flatMap(({ applied }) => applied).sort((a, b) => a - b)).toEqual(
      Array.from({ length: libraryVersion }, (_, index) => index + 1),
    );
    expect(reports.filter(({ functions }) => functions === 'replaced')).toHaveLength(1);
    expect(await migrateSchema(driver, { schema: 'holdfast', migrate: false })).toMatchObject({ applied: [] });
  });

  it.each([
    ['before it created anything', 'CREATE SCHEMA'],
    ['between creating the schema and the first migration', 'CREATE TABLE "holdfast".migration'],
    ['between recording a migration and running it', 'CREATE TABLE workflow_status'],
    ['between the last migration and the functions', "'functions'"],
    ['between recording the functions and replacing them', 'CREATE OR REPLACE FUNCTION'],
  ])('a process is killed %s: the next one completes the migration', async (_when, statement) => {
    const killed = await startMigrator('holdfast', statement);
    killed.go();
    await killed.says('holding');
    await killed.kill();
    await migrateSchema(driver, { schema: 'holdfast' });
    const [row] = await driver.query(`SELECT holdfast.register_executor('e', '1', 1000, 'h', 1)::int4 AS incarnation`);
    expect(row).toEqual({ incarnation: 1 });
    expect(await migrateSchema(driver, { schema: 'holdfast', migrate: false })).toMatchObject({ applied: [] });
  });

  it('a process is killed in the middle of a long migration: nothing of it remains, and the next one need not wait for its end', async () => {
    const killed = await startMigrator('holdfast', undefined, { SLOW_RELEASE: 'yes' });
    killed.go();
    await until(async () => {
      const rows = await driver.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
      );
      return rows.length > 0;
    });
    await killed.kill();
    const files = releaseOf({ libraryVersion: '1.0.0', migrations: [FIRST, THIRD], answer: 'quick' });
    const report = await migrateSchema(driver, { schema: 'holdfast', files });
    expect(report.applied).toEqual([2]);
    const tables = await driver.query<{ name: string }>(
      `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r'`,
    );
    expect(tables.map(({ name }) => name).sort()).toEqual(['first', 'migration', 'third']);
  });

  async function startMigrator(schema: string, holdBefore?: string, env: NodeJS.ProcessEnv = {}): Promise<Migrator> {
    const args = [database.url, schema, ...(holdBefore === undefined ? [] : [holdBefore])];
    const migrator = new Migrator(
      spawn(process.execPath, [join(bundle, 'main.mjs'), ...args], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { ...process.env, ...env },
      }),
    );
    onTestFinished(() => migrator.kill());
    await migrator.says('ready');
    return migrator;
  }
});

/** A child process that runs `fixtures/migrate-process.ts`. */
class Migrator {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exited: Promise<unknown>;
  readonly #lines: string[] = [];
  #wake: () => void = () => undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#exited = once(child, 'exit');
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    child.once('close', () => this.#wake());
  }

  go(): void {
    this.#child.stdin.write('go\n');
  }

  /** Waits for a line that starts so, and returns the rest of it. */
  async says(word: string): Promise<string> {
    for (;;) {
      const line = this.#lines.find((candidate) => candidate.startsWith(word));
      if (line !== undefined) return line.slice(word.length);
      if (this.#child.exitCode !== null) throw new Error(`The process ended without saying "${word}".`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async report(): Promise<MigrationReport> {
    return JSON.parse(await this.says('done')) as MigrationReport;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('not within 20 s');
    await pause(20);
  }
}
