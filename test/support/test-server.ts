import pg from 'pg';

import { startEmbeddedPostgres } from '../../src/drivers/embedded-postgres.js';
import { startDebianPostgres } from './debian-postgres.js';

/** The server that a test run uses. */
export interface TestServer {
  readonly source: string;
  readonly connectionString: string;
  stop(): Promise<void>;
}

/** An engine that answers takes milliseconds; a client without an engine may take long to say so. */
const DOCKER_TIMEOUT_MS = 3_000;

/** Tests create and drop databases all the time and keep nothing, so they need no durability; test files run in parallel. */
const TEST_SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: '256MB',
  autovacuum_naptime: '5s',
  max_prepared_transactions: 10,
} as const;

/**
 * `TEST_DATABASE_URL` if set; else a container if a Docker engine answers; else the embedded PostgreSQL 18.
 * `HOLDFAST_TEST_POSTGRES=15` asks for Debian's PostgreSQL 15, `=18` for the embedded one, in place of a container.
 */
export async function startTestServer(environment: NodeJS.ProcessEnv): Promise<TestServer> {
  const given = environment['TEST_DATABASE_URL'];
  if (given !== undefined && given !== '') {
    return { source: 'TEST_DATABASE_URL', connectionString: given, stop: () => Promise.resolve() };
  }
  const release = environment['HOLDFAST_TEST_POSTGRES'];
  switch (release) {
    case '15':
      return { source: "Debian's PostgreSQL", ...(await startDebianPostgres(TEST_SETTINGS)) };
    case '18':
      return startEmbedded();
    case undefined:
    case '':
      return (await dockerAnswers()) ? startContainer() : startEmbedded();
    default:
      throw new Error(`HOLDFAST_TEST_POSTGRES is "${release}", but only 15 and 18 are known.`);
  }
}

/** `server_version` of a server, which proves that it takes connections. */
export async function readServerVersion(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}

async function startEmbedded(): Promise<TestServer> {
  return { source: 'embedded PostgreSQL', ...(await startEmbeddedPostgres({ settings: TEST_SETTINGS })) };
}

async function dockerAnswers(): Promise<boolean> {
  try {
    const { getContainerRuntimeClient } = await import('testcontainers');
    const timeout = new Promise<never>((_resolve, reject) => {
      setTimeout(() => {
        reject(new Error('no answer'));
      }, DOCKER_TIMEOUT_MS).unref();
    });
    await Promise.race([getContainerRuntimeClient(), timeout]);
    return true;
  } catch {
    return false;
  }
}

async function startContainer(): Promise<TestServer> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const settings = Object.entries(TEST_SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${String(value)}`]);
  const container = await new PostgreSqlContainer('postgres:18').withCommand(['postgres', ...settings]).start();
  return {
    source: 'container postgres:18',
    connectionString: container.getConnectionUri(),
    stop: async () => {
      await container.stop();
    },
  };
}
