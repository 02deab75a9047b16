import pg from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  defineWorkflow,
  OutsideWorkflowError,
  runTransaction,
  transaction,
  type DriverTarget,
} from '../../src/index.js';
import { createBed, gate, type Bed } from '../support/launch.js';

// What the body of a transaction has left behind must not send into the one that has its connection next.

let bed: Bed;
let pool: pg.Pool;
let sql: postgres.Sql;
beforeAll(async () => {
  bed = await createBed();
  pool = new pg.Pool({ connectionString: bed.database.url });
  pool.on('error', () => undefined);
  sql = postgres(bed.database.url, { onnotice: () => undefined });
  await bed.sql.query('CREATE TABLE sale (id text PRIMARY KEY)');
});
afterAll(async () => {
  await bed.close();
  await pool.end();
  await sql.end({ timeout: 1 });
});

type Insert = (id: string) => PromiseLike<unknown>;
const withPg = (): Insert => {
  const { client } = transaction<pg.PoolClient>();
  return (id) => client.query('INSERT INTO sale VALUES ($1)', [id]);
};
const withPostgres = (): Insert => {
  const { client } = transaction<TransactionSql>();
  return (id) => client`INSERT INTO sale ${client({ id })} ${client``}`;
};
const withUnsafe = (): Insert => {
  const { client } = transaction<TransactionSql>();
  return (id) => client.unsafe('INSERT INTO sale VALUES ($1)', [id]);
};
const withSavepoint = async (): Promise<Insert> => {
  const inner = await transaction<TransactionSql>().client.savepoint((within) => [within] as const);
  return (id) => inner[0]`INSERT INTO sale VALUES (${id})`;
};
const LIBRARIES: readonly {
  readonly library: string;
  readonly database: () => DriverTarget;
  readonly insertWith: () => Insert | Promise<Insert>;
}[] = [
  { library: 'pg, by a connection string', database: () => bed.database.url, insertWith: withPg },
  { library: 'pg, by a pool', database: () => pool, insertWith: withPg },
  { library: 'postgres', database: () => sql, insertWith: withPostgres },
  { library: 'postgres, as text', database: () => sql, insertWith: withUnsafe },
  { library: 'postgres, in a savepoint', database: () => sql, insertWith: withSavepoint },
];

test.each(LIBRARIES.flatMap((given) => (['fails', 'returns'] as const).map((end) => ({ ...given, end }))))(
  'with $library: a branch that goes on when the body $end sends nothing any more',
  async ({ library, database, insertWith, end }) => {
    const goesOn = gate();
    let left: Promise<unknown> = Promise.resolve();
    const id = `${library}, ${end}`;
    const sell = defineWorkflow('sell', () =>
      runTransaction('sell', async () => {
        const insert = await insertWith();
        await insert(id);
        left = goesOn.opened.then(() => insert(`${id}, late`)).catch((error: unknown) => error);
        if (end === 'fails') throw new RangeError('no');
      }),
    );
    const holdfast = await bed.launch({ workflows: [sell], database: database() });
    const ended = await (await holdfast.start(sell, {})).result().catch((error: unknown) => error);
    goesOn.open();
    expect(await left).toBeInstanceOf(OutsideWorkflowError);
    expect(ended instanceof RangeError).toBe(end === 'fails');
    const { rows } = await bed.sql.query('SELECT id FROM sale WHERE starts_with(id, $1)', [id]);
    expect(rows).toEqual(end === 'fails' ? [] : [{ id }]);
    await holdfast.close();
  },
);

test('a client that is lent is like the library’s own: its class, what it can do, and listeners that are taken off later', async () => {
  let client: pg.PoolClient | undefined;
  const listener = (): void => undefined;
  const look = defineWorkflow('look', () =>
    runTransaction('look', async () => {
      ({ client } = transaction<pg.PoolClient>());
      client.on('notice', listener);
      return [
        client instanceof pg.Client,
        client.escapeIdentifier('a"b'),
        (await client.query('SELECT 1 AS one')).rows,
      ];
    }),
  );
  const holdfast = await bed.launch({ workflows: [look], database: pool });
  expect(await (await holdfast.start(look, {})).result()).toEqual([true, '"a""b"', [{ one: 1 }]]);
  expect(client?.listeners('notice')).toContain(listener);
  expect(client?.off('notice', listener).listeners('notice')).not.toContain(listener);
  await holdfast.close();
});
