import pg from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  defineWorkflow,
  OutsideWorkflowError,
  runStep,
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

/** Runs a body in a transaction of its own, and returns what it returns. */
async function runBody<Result>(database: DriverTarget, ...bodies: (() => Promise<Result>)[]): Promise<Result[]> {
  const act = defineWorkflow('act', async (n: number) => runTransaction('act', async () => bodies[n]?.()));
  const holdfast = await bed.launch({ workflows: [act], database });
  const results: unknown[] = [];
  for (const n of bodies.keys()) results.push(await (await holdfast.start(act, {}, n)).result());
  await holdfast.close();
  return results as Result[];
}

/** Fails when a promise is rejected that nobody looks at: that ends a process. */
function expectNoUnhandled(): void {
  const unhandled: unknown[] = [];
  const collect = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', collect);
  onTestFinished(async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off('unhandledRejection', collect);
    expect(unhandled).toEqual([]);
  });
}

test('with pg: who is told that a query is refused depends on how it is given, and nobody need listen', async () => {
  expectNoUnhandled();
  let client!: pg.PoolClient;
  await runBody(pool, async () => {
    ({ client } = transaction<pg.PoolClient>());
    return Promise.resolve(1);
  });
  const told = (ask: (tell: (error: Error) => void) => void) => new Promise<Error>(ask);
  expect(
    await told((tell) => {
      client.query('SELECT 1', tell);
    }),
  ).toBeInstanceOf(OutsideWorkflowError);
  const query = new pg.Query('SELECT 1');
  expect(
    await told((tell) => {
      query.on('error', tell);
      expect(client.query(query)).toBe(query);
    }),
  ).toBeInstanceOf(OutsideWorkflowError);
  void client.query('SELECT 1');
});

test('with pg: what a body puts in place of a method is none of the transaction that has its connection next', async () => {
  const seen: unknown[] = [];
  const one = new pg.Pool({ connectionString: bed.database.url, max: 2 });
  const body = async (): Promise<unknown> => {
    const { client } = transaction<pg.PoolClient>();
    // eslint-disable-next-line @typescript-eslint/unbound-method -- as the documentation of pg does it
    const query = client.query as (...args: unknown[]) => unknown;
    Object.assign(client, {
      query: (...args: unknown[]) => {
        seen.push(args[0]);
        return query.apply(client, args);
      },
    });
    const { rows } = await client.query('SELECT 1 AS one');
    Object.assign(client, { query });
    return rows;
  };
  const rows = [{ one: 1 }];
  expect(await runBody(one, body, body, body, body)).toEqual([rows, rows, rows, rows]);
  expect(seen).toHaveLength(4);
  await one.end();
});

test('with postgres: a statement that was made before the end is not sent after it, whoever asks for its outcome', async () => {
  expectNoUnhandled();
  let client!: TransactionSql;
  const made: postgres.PendingQuery<postgres.Row[]>[] = [];
  const make = () => made.push(client`INSERT INTO sale VALUES (${`made ${String(made.length)}`}) RETURNING id`);
  await runBody(sql, async () => {
    ({ client } = transaction<TransactionSql>());
    [1, 2, 3, 4, 5].forEach(make);
    return Promise.resolve(1);
  });
  make();
  const [plain, values, cursor, each, executed, late] = made;
  const read = async () => {
    for await (const rows of cursor?.cursor(1) ?? []) expect(rows).toEqual([]);
  };
  for (const asked of [plain, values?.values(), read(), each?.forEach(() => undefined), late?.values()]) {
    expect(await Promise.resolve(asked).catch((error: unknown) => error)).toBeInstanceOf(OutsideWorkflowError);
  }
  void executed?.execute();
  void client.notify('late', 'nobody awaits it');
  // Had it been sent, it would be there when a later transaction on each connection has ended.
  await sql`SELECT 1`;
  expect((await bed.sql.query("SELECT id FROM sale WHERE id LIKE 'made %'")).rows).toEqual([]);
});

test('with postgres: a savepoint that is left behind does not abort the transaction that has its connection next', async () => {
  expectNoUnhandled();
  const goesOn = gate();
  let left: Promise<unknown> = Promise.resolve();
  let pid: number | undefined;
  const processOf = async (client: TransactionSql) =>
    (await client<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`)[0]?.pid;
  const leaves = async (): Promise<string> => {
    const { client } = transaction<TransactionSql>();
    pid = await processOf(client);
    const begun = gate();
    left = client
      .savepoint(async (within) => {
        begun.open();
        await goesOn.opened;
        await within`INSERT INTO sale VALUES ('in a savepoint')`;
      })
      .catch((error: unknown) => error);
    await begun.opened;
    const unheard = gate();
    void client.savepoint(async () => {
      unheard.open();
      await goesOn.opened;
    });
    await unheard.opened;
    return 'left it';
  };
  const next = async (): Promise<string> => {
    const { client } = transaction<TransactionSql>();
    if ((await processOf(client)) !== pid) return 'elsewhere';
    goesOn.open();
    expect(await left).toBeInstanceOf(OutsideWorkflowError);
    await client`SELECT 1`;
    return 'unharmed';
  };
  const two = postgres(bed.database.url, { onnotice: () => undefined, max: 2 });
  const act = defineWorkflow('leaves', async (n: number) => {
    // The library takes its connections by turns: without a step in between, transactions could get the same one for ever.
    if (n % 2 === 1) await runStep('takes a turn', () => Promise.resolve(n));
    return runTransaction('leaves', n === 0 ? leaves : next);
  });
  const holdfast = await bed.launch({ workflows: [act], database: two });
  let end = '';
  for (let n = 0; end !== 'unharmed'; n++) end = await (await holdfast.start(act, {}, n)).result();
  await holdfast.close();
  await two.end({ timeout: 1 });
});
