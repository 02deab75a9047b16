import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { describe, expect, test, vi } from 'vitest';

import { waitUntil } from '../support/launch.js';

import { startEmbeddedPostgres } from '../../src/drivers/embedded-postgres.js';
import { EmbeddedPostgresError } from '../../src/errors/embedded-errors.js';
import {
  acceptsConnections,
  isRoot,
  parentOf,
  runStatement,
  scratchDirectory,
  startEmbeddedUser,
} from './embedded-support.js';

const GONE = { timeout: 20_000, interval: 50 };

describe('a temporary server', () => {
  test('runs with durable settings, and leaves nothing behind when stopped, once or twice', async () => {
    const server = await startEmbeddedPostgres();
    const cluster = await clusterOf(server.connectionString);
    expect(await runStatement(server.connectionString, "SELECT current_setting('fsync') AS value")).toBe('on');
    expect(await runStatement(server.connectionString, "SELECT current_setting('server_version') AS value")).toBe(
      server.version,
    );
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(await acceptsConnections(server.connectionString)).toBe(false);
    expect(existsSync(dirname(cluster))).toBe(false);
  });

  test.runIf(isRoot)('started by root, runs as another user', async () => {
    const server = await startEmbeddedPostgres({ settings: { fsync: 'off' } });
    const cluster = await clusterOf(server.connectionString);
    expect(statSync(cluster).uid).not.toBe(0);
    await server.stop();
  });

  test.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)('ends with its process, which ends by %s', async (signal) => {
    const user = await startEmbeddedUser();
    const cluster = await clusterOf(user.connectionString);
    user.child.kill(signal);
    await vi.waitUntil(async () => !(await acceptsConnections(user.connectionString)), GONE);
    await vi.waitUntil(() => !existsSync(dirname(cluster)), GONE);
  });

  test.runIf(process.platform === 'linux')('stops when its supervisor is killed', async () => {
    const server = await startEmbeddedPostgres({ settings: { fsync: 'off' } });
    const pidFile = join(await clusterOf(server.connectionString), 'postmaster.pid');
    const serverPid = Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]);
    process.kill(parentOf(serverPid), 'SIGKILL');
    await vi.waitUntil(async () => !(await acceptsConnections(server.connectionString)), GONE);
    await server.stop();
  });

  test('that cannot start gives the reason from its log in a typed error', async () => {
    const start = startEmbeddedPostgres({ settings: { shared_buffers: 'plenty' } });
    const error = await start.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(EmbeddedPostgresError);
    expect(error).toMatchObject({
      code: 'EMBEDDED_POSTGRES_FAILED',
      log: expect.stringContaining('shared_buffers') as string,
    });
  });
});

describe('a kept data directory', () => {
  test('keeps its data between runs', async () => {
    const dataDir = join(scratchDirectory(), 'deep', 'postgres');
    const first = await startEmbeddedPostgres({ dataDir });
    await runStatement(first.connectionString, 'CREATE TABLE kept AS SELECT 42 AS value');
    await first.stop();
    const second = await startEmbeddedPostgres({ dataDir });
    expect(await runStatement(second.connectionString, 'SELECT value FROM kept')).toBe(42);
    await second.stop();
  });

  test('is served by one server to all who start it at once, until the last of them has gone', async () => {
    const dataDir = scratchDirectory();
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => startEmbeddedUser(dataDir)));
    if (first === undefined) throw new Error('unreachable: three were started');
    const here = await startEmbeddedPostgres({ dataDir });
    for (const other of others) expect(other.connectionString).toBe(first.connectionString);
    expect(here.connectionString).toBe(first.connectionString);
    await first.finish();
    for (const other of others) other.child.kill('SIGKILL');
    expect(await acceptsConnections(here.connectionString)).toBe(true);
    await here.stop();
    // The supervisor may hear of the killed ones' ends after ours: then the server goes down when it does.
    await waitUntil(async () => !(await acceptsConnections(here.connectionString)), 'the server is down');
  });

  test('is started again at once after its process was killed', async () => {
    const dataDir = scratchDirectory();
    const user = await startEmbeddedUser(dataDir);
    await runStatement(user.connectionString, 'CREATE TABLE kept AS SELECT 42 AS value');
    user.child.kill('SIGKILL');
    const server = await startEmbeddedPostgres({ dataDir });
    expect(await runStatement(server.connectionString, 'SELECT value FROM kept')).toBe(42);
    await server.stop();
  });

  test.runIf(isRoot)('works where the server’s user cannot walk to it', async () => {
    const closed = join(scratchDirectory(), 'closed');
    mkdirSync(closed, { mode: 0o700 });
    const dataDir = join(closed, 'postgres');
    const first = await startEmbeddedPostgres({ dataDir });
    await runStatement(first.connectionString, 'CREATE TABLE kept AS SELECT 42 AS value');
    await first.stop();
    const second = await startEmbeddedPostgres({ dataDir });
    expect(await runStatement(second.connectionString, 'SELECT value FROM kept')).toBe(42);
    await second.stop();
  });
});

async function clusterOf(connectionString: string): Promise<string> {
  return String(await runStatement(connectionString, "SELECT current_setting('data_directory') AS value"));
}
