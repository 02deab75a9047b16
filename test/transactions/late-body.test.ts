import pg from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineDataSource, defineWorkflow, runTransaction, transaction } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let sql: postgres.Sql;
beforeAll(async () => {
  bed = await createBed();
  sql = postgres(bed.database.url, { onnotice: () => undefined });
});
afterAll(async () => {
  await bed.close();
  await sql.end({ timeout: 1 });
});

const LATE = [
  ['returns', (text: string) => text],
  [
    'returns what cannot be encoded',
    () => {
      throw new Error('no key');
    },
  ],
] as const;

test.each(LATE)(
  'a body that %s after its connection broke and another run began has no part in the result',
  async (how, encode) => {
    const workflowId = `late: ${how}`;
    const [pid, returns, records, recorded] = [gate<number>(), gate(), gate(), gate()];
    const encoded: string[] = [];
    // Holds the second run up between its return and its record.
    const codec = {
      name: 'slow',
      encode: async (text: string) => {
        encoded.push(text);
        if (text === '"second"') {
          records.open();
          await recorded.opened;
        }
        return text === '"first"' ? encode(text) : text;
      },
      decode: (text: string) => text,
    };
    let runs = 0;
    const write = defineWorkflow('write', () =>
      runTransaction('write', async () => {
        if (++runs > 1) return 'second';
        const [row] = await transaction<TransactionSql>().client<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
        pid.open(row?.pid ?? 0);
        await returns.opened;
        return 'first';
      }),
    );
    const holdfast = await bed.launch({ workflows: [write], database: sql, codecs: [codec] });
    const handle = await holdfast.start(write, { workflowId });
    await bed.sql.query('SELECT pg_terminate_backend($1)', [await pid.opened]);
    await records.opened;
    returns.open();
    await waitUntil(() => encoded.includes('"first"'), 'the first run has returned');
    recorded.open();
    expect(await handle.result()).toBe('second');
    const { rows } = await bed.sql.query(
      `SELECT output::json ->> 'data' AS value FROM holdfast.step_result WHERE workflow_id = $1`,
      [workflowId],
    );
    expect(rows).toEqual([{ value: '"second"' }]);
    await holdfast.close();
  },
);

test('a body of an adapter that runs out of time and never settles is given up with its idle timeout, and not before it has stopped', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  pool.on('error', () => undefined);
  const released: boolean[] = [];
  const source = defineDataSource('adapter', {
    async transaction<Result>(body: (client: pg.PoolClient) => Promise<Result>) {
      const client = await pool.connect();
      client.on('error', () => undefined);
      try {
        await client.query('BEGIN');
        const result = await body(client);
        await client.query('COMMIT');
        client.release();
        return result;
      } catch (error) {
        released.push(busy);
        client.release(true);
        await client.query('ROLLBACK');
        throw error;
      }
    },
    async query(client: pg.PoolClient, statement: string, parameter: string) {
      return (await client.query<Record<string, unknown>>(statement, [parameter])).rows;
    },
  });
  let busy = true;
  const write = defineWorkflow('endless', () =>
    runTransaction(
      'write',
      async () => {
        const { client } = transaction(source);
        for (let sent = 0; sent < 10; sent++) await client.query('SELECT pg_sleep(0.1)');
        busy = false;
        return new Promise(() => undefined);
      },
      { dataSource: source, timeout: 50, idleTimeout: 300 },
    ),
  );
  const holdfast = await bed.launch({ workflows: [write], dataSources: [source] });
  const handle = await holdfast.start(write, { workflowId: 'endless' });
  await expect(handle.result()).rejects.toMatchObject({ code: 'STEP_TIMEOUT' });
  expect(released).toEqual([false]);
  await holdfast.close();
  await pool.end();
});
