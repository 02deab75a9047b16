import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import knexOf from 'knex';
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely';
import pg from 'pg';
import { DataSource as TypeormDataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drizzleAdapter } from '../../examples/data-sources/drizzle.js';
import { knexAdapter } from '../../examples/data-sources/knex.js';
import { kyselyAdapter } from '../../examples/data-sources/kysely.js';
import { prismaAdapter } from '../../examples/data-sources/prisma.js';
import { typeormAdapter } from '../../examples/data-sources/typeorm.js';
import {
  defineDataSource,
  defineWorkflow,
  renderCompletionSql,
  runTransaction,
  transaction,
  type DataSource,
} from '../../src/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createBed, type Bed } from '../support/launch.js';
import { prismaClient } from './fixtures/prisma-client.js';

/** A library on one database, with the body's way to run a statement in the open transaction. */
interface Library {
  readonly source: DataSource;
  readonly run: (statement: string) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

const LIBRARIES: Record<string, (url: string) => Library | Promise<Library>> = {
  Drizzle: (url) => {
    const pool = new pg.Pool({ connectionString: url });
    const source = defineDataSource('drizzle', drizzleAdapter(drizzle(pool)));
    return {
      source,
      run: (statement) => transaction(source).client.execute(sql.raw(statement)),
      close: () => pool.end(),
    };
  },
  Kysely: (url) => {
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) });
    const source = defineDataSource('kysely', kyselyAdapter(db));
    return {
      source,
      run: (statement) => kyselySql.raw(statement).execute(transaction(source).client),
      close: () => db.destroy(),
    };
  },
  Knex: (url) => {
    const knex = knexOf({ client: 'pg', connection: url });
    const source = defineDataSource('knex', knexAdapter(knex));
    return {
      source,
      run: async (statement) => {
        await transaction(source).client.raw(statement);
      },
      close: () => knex.destroy(),
    };
  },
  TypeORM: async (url) => {
    const typeorm = await new TypeormDataSource({ type: 'postgres', url }).initialize();
    const source = defineDataSource('typeorm', typeormAdapter(typeorm));
    return { source, run: (statement) => transaction(source).client.query(statement), close: () => typeorm.destroy() };
  },
  Prisma: (url) => {
    const prisma = prismaClient(url);
    const source = defineDataSource('prisma', prismaAdapter(prisma));
    return {
      source,
      run: async (statement) => transaction(source).client.$executeRawUnsafe(statement),
      close: () => prisma.$disconnect(),
    };
  },
};

let bed: Bed;
let other: TestDatabase;
let elsewhere: pg.Client;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());

beforeAll(async () => {
  bed = await createBed();
  other = await createTestDatabase();
  elsewhere = new pg.Client({ connectionString: other.url });
  await elsewhere.connect();
  await elsewhere.query(await renderCompletionSql());
  for (const client of [bed.sql, elsewhere])
    await client.query('CREATE TABLE effect (id text PRIMARY KEY, n int DEFAULT 0)');
});
afterAll(async () => {
  await bed.close();
  await elsewhere.end();
  await other.drop();
});

describe.each(Object.entries(LIBRARIES))('%s', (name, open) => {
  test.each(['the same database', 'another database'] as const)('takes part in transactions: %s', async (where) => {
    const looker = where === 'the same database' ? bed.sql : elsewhere;
    const library = await open(where === 'the same database' ? bed.database.url : other.url);
    const { source } = library;
    const holdfast = await bed.launch({ workflows: [run], dataSources: [source] });
    await looker.query('TRUNCATE effect');
    let tries = 0;
    scenario = async () => [
      await runTransaction('write', () => library.run("INSERT INTO effect VALUES ('a')").then(() => 'written'), {
        dataSource: source,
      }),
      await runTransaction(
        'fails',
        async () => {
          await library.run("INSERT INTO effect VALUES ('b')");
          throw new RangeError('no');
        },
        { dataSource: source },
      ).catch((error: unknown) => (error as Error).name),
      await runTransaction(
        'conflict',
        async () => {
          tries += 1;
          await library.run('SELECT n FROM effect');
          if (tries === 1) await looker.query('UPDATE effect SET n = n + 10');
          await library.run('UPDATE effect SET n = n + 1');
          return 'serialised';
        },
        { dataSource: source, isolation: 'repeatable read' },
      ),
      await runTransaction('read only', () => library.run("INSERT INTO effect VALUES ('c')"), {
        dataSource: source,
        readOnly: true,
      }).then(
        () => 'written',
        () => 'refused',
      ),
    ];
    const workflowId = `${name} in ${where}`;
    const handle = await holdfast.start(run, { workflowId });
    expect(await handle.result()).toEqual(['written', 'RangeError', 'serialised', 'refused']);
    expect(tries).toBe(2);
    expect((await looker.query('SELECT id, n FROM effect')).rows).toEqual([{ id: 'a', n: 11 }]);
    const { rowCount } = await elsewhere.query('SELECT FROM holdfast_completion.completion WHERE workflow_id = $1', [
      workflowId,
    ]);
    expect(rowCount).toBe(where === 'the same database' ? 0 : 3);
    await holdfast.close();
    await library.close();
  });
});
