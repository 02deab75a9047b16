import pg from 'pg';
import { expect, test } from 'vitest';

import { createTestDatabase } from '../support/database.js';

test('each test database is empty and apart from the others', async () => {
  const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  try {
    expect(await run(first.url, 'CREATE TABLE mark (); SELECT current_database() AS name')).toBe(first.name);
    expect(await run(second.url, "SELECT to_regclass('public.mark')::text AS name")).toBeNull();
  } finally {
    await Promise.all([first.drop(), second.drop()]);
  }
});

test('a test database can be dropped twice, and while a client is connected', async () => {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => undefined);
  await client.connect();
  await database.drop();
  await database.drop();
  await expect(client.query('SELECT 1')).rejects.toThrow();
});

async function run(connectionString: string, statements: string): Promise<unknown> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const results = await client.query<{ name: unknown }>(statements);
    // Several statements in one call give an array of results, which the types do not know.
    const last: unknown = Array.isArray(results) ? results.at(-1) : results;
    return (last as pg.QueryResult<{ name: unknown }>).rows[0]?.name;
  } finally {
    await client.end();
  }
}
