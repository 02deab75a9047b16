import { randomBytes } from 'node:crypto';

import pg from 'pg';
import { inject } from 'vitest';

/** A database of one test or test file alone. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  /** Removes the database and ends whatever is still connected to it. Idempotent. */
  drop(): Promise<void>;
}

/** Creates an empty database with a unique name, so that test files can run at the same time. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = inject('databaseUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await runOnServer(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: () => runOnServer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function runOnServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
