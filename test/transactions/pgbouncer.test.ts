import pg from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { defineDataSource, defineWorkflow, runTransaction, transaction } from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';
import { canRunPgBouncer, startPgBouncer, type PgBouncer } from '../support/pgbouncer.js';

describe.runIf(canRunPgBouncer())('through PgBouncer in transaction mode', () => {
  let bed: Bed;
  let bouncer: PgBouncer;
  beforeAll(async () => {
    bed = await createBed();
    await bed.sql.query('CREATE TABLE effect (id text)');
    bouncer = await startPgBouncer(inject('databaseUrl'));
  });
  afterAll(async () => {
    await bed.close();
    await bouncer.stop();
  });

  test.each(['pg', 'postgres'] as const)(
    '%s: transactions take effect once, and a data source behind it is known to be the same database',
    async (library) => {
      const url = bouncer.connectionString(bed.database.url);
      const pool = new pg.Pool({ connectionString: url, max: 3 });
      const sql = postgres(url, { max: 3, prepare: false });
      const beside =
        library === 'pg' ? defineDataSource('beside', pool) : defineDataSource<TransactionSql>('beside', sql);
      const write = async (id: string): Promise<void> => {
        const { client } = transaction<pg.PoolClient | TransactionSql>();
        const text = 'INSERT INTO effect VALUES ($1)';
        await ('unsafe' in client ? client.unsafe(text, [id]) : client.query(text, [id]));
      };
      const run = defineWorkflow(`bounced ${library}`, async (n: number) => {
        await runTransaction('own', () => write(`own ${String(n)}`));
        await runTransaction('beside', () => write(`beside ${String(n)}`), { dataSource: beside });
        await runTransaction('fails', () => write('never').then(() => Promise.reject(new Error('no')))).catch(
          () => undefined,
        );
      });
      const direct = await bed.launch({
        workflows: [run],
        database: url,
        listenDatabase: bed.database.url,
        dataSources: [beside],
      });
      await bed.sql.query('TRUNCATE effect');
      const handles = await Promise.all(Array.from({ length: 20 }, (_, n) => direct.start(run, {}, n)));
      await Promise.all(handles.map((handle) => handle.result()));
      const { rows } = await bed.sql.query('SELECT count(*)::int AS n, count(DISTINCT id)::int AS ids FROM effect');
      expect(rows).toEqual([{ n: 40, ids: 40 }]);
      expect((await bed.sql.query(`SELECT to_regnamespace('holdfast_completion') AS there`)).rows).toEqual([
        { there: null },
      ]);
      await direct.close();
      await pool.end();
      await sql.end();
    },
  );
});
