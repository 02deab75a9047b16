import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  defineDataSource,
  defineWorkflow,
  runTransaction,
  transaction,
  type DataSource,
  type Holdfast,
  type TransactionOptions,
} from '../../src/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';

// What became of a transaction is known, whatever it failed with: a rollback neither asks a person for it, nor leaves it.

let bed: Bed;
let other: TestDatabase;
let elsewhere: pg.Pool;
let app: DataSource<pg.PoolClient>;
let holdfast: Holdfast;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());
const undone: unknown[] = [];

beforeAll(async () => {
  bed = await createBed();
  other = await createTestDatabase();
  elsewhere = new pg.Pool({ connectionString: other.url });
  elsewhere.on('error', () => undefined);
  app = defineDataSource('app', elsewhere);
  for (const database of [bed.sql, elsewhere]) await database.query('CREATE TABLE sale (id text PRIMARY KEY)');
  holdfast = await bed.launch({ workflows: [run], dataSources: [app] });
});
afterAll(async () => {
  await bed.close();
  await elsewhere.end();
  await other.drop();
});
beforeEach(() => {
  undone.length = 0;
});

type Options = Pick<TransactionOptions, 'timeout' | 'retries'>;

/** A workflow that sells, in Holdfast's own database or another one, and fails with what that fails with. Returns its status. */
async function sell(id: string, dataSource: typeof app | undefined, body: () => unknown, options: Options = {}) {
  scenario = () =>
    runTransaction(
      'sell',
      async () => {
        await transaction<pg.PoolClient>().client.query('INSERT INTO sale VALUES ($1)', [id]);
        return body();
      },
      {
        ...options,
        ...(dataSource === undefined ? {} : { dataSource }),
        compensate: (result: unknown) => Promise.resolve(void undone.push(result)),
      },
    );
  const handle = await holdfast.start(run, { workflowId: id });
  await waitUntil(async () => ['ERROR', 'BLOCKED'].includes(await handle.status()), 'the rollback is over');
  return handle.status();
}

async function isSold(id: string, dataSource: typeof app | undefined): Promise<boolean> {
  const database = dataSource === undefined ? bed.sql : elsewhere;
  return (await database.query('SELECT FROM sale WHERE id = $1', [id])).rowCount === 1;
}

const never = (): Promise<unknown> => new Promise(() => undefined);
const failures: Readonly<Record<string, { readonly body: () => unknown; readonly options?: Options }>> = {
  'that ran out of time': { body: never, options: { timeout: 50 } },
  'that ran out of time at each attempt': {
    body: never,
    options: { timeout: 50, retries: { maxAttempts: 2, initialDelay: 1 } },
  },
  'whose result cannot be stored': { body: () => () => undefined },
};

test.each(Object.keys(failures).flatMap((name) => [false, true].map((isElsewhere) => ({ name, isElsewhere }))))(
  'a transaction $name was rolled back: there is nothing to undo, nor to find out; in another database: $isElsewhere',
  async ({ name, isElsewhere }) => {
    const dataSource = isElsewhere ? app : undefined;
    const id = `${name}, ${String(isElsewhere)}`;
    const { body, options } = failures[name] ?? { body: never };
    expect(await sell(id, dataSource, body, options)).toBe('ERROR');
    expect((await holdfast.admin.get(id)).attention).toBeNull();
    expect((await holdfast.admin.rollback(id))?.compensations.map(({ state }) => state)).toEqual(['not-needed']);
    expect(await isSold(id, dataSource)).toBe(false);
    expect(undone).toEqual([]);
  },
);

test('one that has committed in another database, and whose record is refused, is undone with its result', async () => {
  await bed.sql.query(
    `ALTER TABLE holdfast.step_result ADD CONSTRAINT no_poison CHECK (output IS DISTINCT FROM '"poison"')`,
  );
  expect(await sell('refused', app, () => 'poison')).toBe('ERROR');
  expect(await isSold('refused', app)).toBe(true);
  expect(undone).toEqual(['poison']);
});

test.each([false, true])(
  'what a body has committed by itself waits for a person; in another database: %s',
  async (isElsewhere) => {
    const dataSource = isElsewhere ? app : undefined;
    const id = `ended, ${String(isElsewhere)}`;
    expect(
      await sell(id, dataSource, () =>
        transaction<pg.PoolClient>()
          .client.query('COMMIT')
          .then(() => 1),
      ),
    ).toBe('BLOCKED');
    expect(await isSold(id, dataSource)).toBe(true);
    expect((await holdfast.admin.get(id)).attention).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    const [compensation] = (await holdfast.admin.rollback(id))?.compensations ?? [];
    await holdfast.admin.skipCompensation(id, { seq: compensation?.seq ?? -1 });
    await holdfast.admin.resume(id);
    await expect(holdfast.handle(id).result()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(undone).toEqual([]);
  },
);
