import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/index.js';
import type { Cleanup } from './cleanup.js';
import { StoryError } from './story-error.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** Where the records of this story are. */
export interface StoryDatabase {
  readonly url: string;
  readonly schema: string;
  readonly description: string;
}

/**
 * The database of `DATABASE_URL`, in a schema of its own that is dropped at the end; without that, a PostgreSQL that is set
 * up for this story and removed with it.
 */
export async function openDatabase(cleanup: Cleanup): Promise<StoryDatabase> {
  const url = process.env['DATABASE_URL'] ?? '';
  if (url === '') {
    const server = await startEmbeddedPostgres();
    cleanup.add(() => server.stop());
    const description = `an embedded PostgreSQL ${server.version}, removed at the end`;
    return { url: server.connectionString, schema: 'holdfast', description };
  }
  const version = await serverVersion(url);
  const schema = `checkout_${randomBytes(6).toString('hex')}`;
  cleanup.add(() => query(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`));
  return { url, schema, description: `PostgreSQL ${version} of DATABASE_URL, schema ${schema}, dropped at the end` };
}

async function serverVersion(url: string): Promise<string> {
  try {
    const [row] = await query(url, 'SHOW server_version');
    return String(row?.['server_version']);
  } catch (error) {
    const reason = error instanceof Error ? error.message || error.name : String(error);
    throw new StoryError(`The database of DATABASE_URL cannot be used: ${reason}`, { cause: error });
  }
}

async function query(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
