import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';

import type pg from 'pg';

import { chooseServerAccount } from '../src/drivers/embedded-account.js';
import { startEmbeddedPostgres } from '../src/drivers/embedded-postgres.js';
import { startServer } from '../src/drivers/server-process.js';

/** The server that all sides use. */
export interface BenchServer {
  readonly source: string;
  readonly url: string;
  stop(): Promise<void>;
}

/** What the server says about itself, for the report. */
export type ServerSettings = Readonly<Record<string, string>>;

const DEBIAN_BIN_DIR = '/usr/lib/postgresql/15/bin';

/**
 * Durability is left at PostgreSQL's default, which is full. The rest is what any production server has: room for the
 * working set, and no full checkpoint in the middle of one side's window.
 */
const SETTINGS = {
  shared_buffers: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  max_connections: 200,
} as const;

/** Without these, a benchmark of durable execution measures nothing. */
const REQUIRED_SETTINGS: ServerSettings = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' };

const REPORTED_SETTINGS = [
  'server_version',
  ...Object.keys(REQUIRED_SETTINGS),
  'wal_sync_method',
  'wal_level',
  'commit_delay',
  ...Object.keys(SETTINGS),
];

/** `BENCH_DATABASE_URL` if set (a role that may create databases); else Debian's PostgreSQL 15; else the embedded one. */
export async function openServer(environment: NodeJS.ProcessEnv): Promise<BenchServer> {
  const given = environment['BENCH_DATABASE_URL'];
  if (given !== undefined && given !== '') {
    return { source: 'BENCH_DATABASE_URL', url: given, stop: () => Promise.resolve() };
  }
  const debian = existsSync(DEBIAN_BIN_DIR);
  const server = debian
    ? await startServer({ binDir: DEBIAN_BIN_DIR, account: chooseServerAccount(), settings: SETTINGS })
    : await startEmbeddedPostgres({ settings: SETTINGS });
  return {
    source: debian ? "Debian's PostgreSQL 15" : 'embedded PostgreSQL',
    url: server.connectionString,
    stop: () => server.stop(),
  };
}

/**
 * The settings that matter, as the server has them.
 * @throws Error when the server is not fully durable.
 */
export async function assertDurable(client: pg.Client): Promise<ServerSettings> {
  const settings: Record<string, string> = {};
  for (const name of REPORTED_SETTINGS) settings[name] = await show(client, name);
  for (const [name, required] of Object.entries(REQUIRED_SETTINGS)) {
    if (settings[name] !== required) {
      throw new Error(`The server has ${name} = ${String(settings[name])}; the benchmark needs ${required}.`);
    }
  }
  await assertOnDisk(await show(client, 'data_directory'));
  return settings;
}

const TMPFS_MAGIC = 0x01021994;

/** On a file system in memory, fsync returns at once and proves nothing. */
async function assertOnDisk(dataDir: string): Promise<void> {
  // Out of our sight (another machine, a container) it is for whoever gave the server to know.
  const fileSystem = await statfs(dataDir).catch(() => undefined);
  if (fileSystem?.type === TMPFS_MAGIC) {
    throw new Error('The data directory is on a file system in memory: set TMPDIR to a directory on a disk.');
  }
}

async function show(client: pg.Client, setting: string): Promise<string> {
  const { rows } = await client.query<Record<string, string>>(`SHOW ${setting}`);
  return Object.values(rows[0] ?? {})[0] ?? '';
}

/** An empty database for one side, with a name that no earlier run has used. */
export async function createDatabase(client: pg.Client, serverUrl: string, side: string): Promise<BenchDatabase> {
  const name = `bench_${side}_${randomBytes(4).toString('hex')}`;
  await client.query(`CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** A side's database; removed at the end since the server may be someone's. */
export interface BenchDatabase {
  readonly url: string;
  drop(): Promise<void>;
}
