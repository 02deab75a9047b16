import pg from 'pg';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test, vi } from 'vitest';
import {
  defineQuery,
  defineSignal,
  defineUpdate,
  defineWorkflow,
  Holdfast,
  HoldfastClient,
  InvalidArgumentError,
  runStep,
  runTransaction,
  Step,
  Transaction,
  Workflow,
  type WorkflowHandle,
} from '../../src/index.js';
import { isConnectionString } from '../../src/drivers/open-driver.js';
import { createBed, silentLogger, type Bed } from '../support/launch.js';

// What callers without types get wrong, and what types cannot tell.

const echo = defineWorkflow('echo', async (value?: number) => Promise.resolve(value ?? -1));
const enqueuing = defineWorkflow('enqueuing', async () => {
  const results = await holdfast.enqueueMany(echo, {}, wrong([7, { args: [8] }]));
  return results.map((result) => (result.ok ? 'ok' : (result.error as { code?: string }).code));
});
const leavingOut = defineWorkflow('leavingOut', () => {
  const calls: (() => unknown)[] = [
    () => runStep('step', wrong(undefined)),
    () => runTransaction('transaction', wrong(undefined)),
    () => asking.handle(wrong(undefined)),
    () => adding.handle(wrong(undefined)),
    () => adding.handle((n) => n, wrong({ validate: 1 })),
    () => adding.handle((n) => n, wrong({ validator: () => 1 })),
  ];
  const codes = calls.map((call) => {
    try {
      call();
      return 'taken';
    } catch (error) {
      return (error as { code?: string }).code;
    }
  });
  return Promise.resolve(codes);
});
/** What a standard decorator is told of a method. */
const METHOD = { kind: 'method', name: 'method', addInitializer: () => undefined };
const asking = defineQuery<[], number>('asking');
const adding = defineUpdate<number, number>('adding');
const approving = defineSignal<string>('approving');

/** As from a caller without types. */
const wrong = (value: unknown): never => value as never;
const saying = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const REFUSED = { code: 'INVALID_ARGUMENT' };

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;
beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [echo, enqueuing, leavingOut] });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

const workflows = async (): Promise<number> => (await holdfast.admin.list({ limit: 1_000 })).items.length;

describe('wrong arguments are refused with a typed error, and nothing is written', () => {
  test.each([undefined, null, 5, 'order-1', []])('options of the form %o', async (options) => {
    const before = await workflows();
    await expect(holdfast.start(echo, wrong(options), 1)).rejects.toMatchObject(REFUSED);
    for (const target of [holdfast, client]) {
      await expect(target.enqueue(echo, wrong(options), 1)).rejects.toMatchObject(REFUSED);
      await expect(target.enqueueMany(echo, wrong(options), [{ args: [1] }])).rejects.toMatchObject(REFUSED);
    }
    await expect(client.start(echo, wrong(options), 1)).rejects.toMatchObject(REFUSED);
    expect(await workflows()).toBe(before);
  });

  test('items of enqueueMany without their arguments; the others are enqueued, inside a workflow, too', async () => {
    await expect(holdfast.enqueueMany(echo, {}, wrong(5))).rejects.toMatchObject(REFUSED);
    for (const target of [holdfast, client]) {
      const results = await target.enqueueMany(echo, {}, wrong([1, null, { workflowId: 'x' }, { args: [7] }]));
      expect(results.map((result) => (result.ok ? 'ok' : result.error))).toMatchObject([
        REFUSED,
        REFUSED,
        REFUSED,
        'ok',
      ]);
    }
    expect(await enqueuing()).toEqual(['INVALID_ARGUMENT', 'ok']);
  });

  test('anything but a definition for a signal, query or update, which would be waited for in vain', async () => {
    const handle = holdfast.handle('anything');
    await expect(handle.signal(wrong('approving'), wrong('yes'))).rejects.toMatchObject(REFUSED);
    await expect(handle.query(wrong(approving))).rejects.toMatchObject(REFUSED);
    await expect(handle.update(wrong(asking), wrong(1))).rejects.toMatchObject(REFUSED);
    await expect(handle.update(wrong({ name: 'adding' }), wrong(1))).rejects.toMatchObject(REFUSED);
  });

  test('options that do not exist, of result, cancel and metricsText', async () => {
    const handle = holdfast.handle('anything');
    await expect(handle.result(wrong({ timeout: 5 }))).rejects.toMatchObject(REFUSED);
    await expect(handle.cancel(wrong({ because: 'x' }))).rejects.toMatchObject(REFUSED);
    await expect(holdfast.metricsText(wrong({ flet: false }))).rejects.toMatchObject(REFUSED);
  });

  test('options of close, which then closes nothing', async () => {
    for (const options of [{ drain: 5 }, { drainMs: '5s' }, { drainMs: NaN }, { drainMs: -1 }, 5]) {
      await expect(holdfast.close(wrong(options))).rejects.toMatchObject(REFUSED);
    }
    expect(holdfast.health().state).toBe('running');
  });

  test('the turns of the queue that schedules share cannot be taken away; its other limits can be set', async () => {
    const name = 'holdfast/schedules';
    await expect(holdfast.queues.define({ name })).rejects.toMatchObject(REFUSED);
    await expect(holdfast.queues.update(name, { keyConcurrency: null })).rejects.toMatchObject(REFUSED);
    await expect(bed.launch({ workflows: [echo], queues: [{ name, keyConcurrency: 2 }] })).rejects.toMatchObject(
      REFUSED,
    );
    await holdfast.queues.define({ name, keyConcurrency: 1, concurrency: 5 });
    await holdfast.queues.update(name, { concurrency: null });
    expect((await holdfast.queues.get(name)).keyConcurrency).toBe(1);
  });

  test('attributes that JSON would lose a part of; what says itself how it is written is taken', async () => {
    const before = await workflows();
    const lossy = [{ a: NaN }, { a: () => 1 }, { a: [new Map()] }, { a: Symbol('a') }, new Set(), { a: 1n }];
    for (const attributes of lossy) {
      await expect(holdfast.start(echo, { attributes: wrong(attributes) }, 1)).rejects.toMatchObject(REFUSED);
    }
    expect(await workflows()).toBe(before);
    const attributes = { at: new Date(0), left: undefined, deep: { list: [1, 'a', null] } };
    const { workflowId } = await holdfast.start(echo, { attributes }, 1);
    expect((await holdfast.admin.get(workflowId)).attributes).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      deep: { list: [1, 'a', null] },
    });
  });

  test('a name where a function is wanted: that a client takes names', async () => {
    await expect(holdfast.start(wrong('echo'), {}, 1)).rejects.toMatchObject({
      code: 'WORKFLOW_NOT_REGISTERED',
      message: saying(/HoldfastClient takes names/),
    });
  });

  test('functions that are left out, and options that say nothing', () => {
    expect(() => defineWorkflow('empty', wrong(undefined))).toThrow(/body of a workflow.*must be a function/);
    expect(() => defineWorkflow('hasty', wrong(echo), { onStuck: 'fail' })).toThrow(/"stuckAfter", which is not given/);
    const retries = { maxAttempts: 2 };
    for (const more of [{ shouldRetry: 1 }, { backoff: 'linear' }, { jitter: 'no' }]) {
      expect(() => Step({ retries: wrong({ ...retries, ...more }) })(wrong(echo), wrong(METHOD))).toThrow(
        InvalidArgumentError,
      );
    }
    const compensate = { run: () => Promise.resolve(), retries: wrong({ ...retries, initalDelay: 5 }) };
    expect(() => Step({ compensate })(wrong(echo), wrong(METHOD))).toThrow(/has no option "initalDelay"/);
  });

  test('functions that are left out inside a workflow, which then records nothing of them', async () => {
    expect(await leavingOut()).toEqual(new Array(6).fill('INVALID_ARGUMENT'));
  });

  test('a decorator without parentheses, whose method would do nothing', () => {
    expect(() => Step(wrong(echo))).toThrow(/@Step\(\), with parentheses/);
    expect(() => Transaction(wrong(echo))).toThrow(/@Transaction\(\), with parentheses/);
    expect(() => Workflow(wrong(echo))).toThrow(/@Workflow\(\), with parentheses/);
  });

  test('a lease without a function to run is not taken', async () => {
    await expect(
      holdfast.leases.withLease(
        'box',
        wrong(() => 1),
        wrong(undefined),
      ),
    ).rejects.toMatchObject(REFUSED);
    await expect(holdfast.leases.withLease('box', {}, wrong(undefined))).rejects.toMatchObject(REFUSED);
    await expect(holdfast.leases.whileLeader('box', {}, wrong(undefined))).rejects.toMatchObject(REFUSED);
    expect((await bed.sql.query('SELECT FROM holdfast.named_lease')).rowCount).toBe(0);
  });
});

describe('a transaction that is none', () => {
  test('a client of pg without an open transaction is refused, and nothing is written', async () => {
    const before = await workflows();
    const sql = new pg.Client(bed.database.url);
    await expect(holdfast.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject(REFUSED);
    await sql.connect();
    await expect(holdfast.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject(REFUSED);
    await expect(client.send('anything', 't', 1, { transaction: sql })).rejects.toMatchObject(REFUSED);
    const fence = { transaction: sql, resource: 'ledger', token: 1 };
    await expect(holdfast.leases.acceptFence(fence)).rejects.toMatchObject(REFUSED);
    for (const none of [null, 'sql', {}]) {
      await expect(holdfast.enqueue(echo, { transaction: wrong(none) }, 1)).rejects.toMatchObject(REFUSED);
      await expect(client.send('anything', 't', 1, { transaction: wrong(none) })).rejects.toMatchObject(REFUSED);
      await expect(holdfast.outbox.add('t', 1, { transaction: wrong(none) })).rejects.toMatchObject(REFUSED);
    }
    await expect(holdfast.leases.acceptFence(wrong({ resource: 'ledger', token: 1 }))).rejects.toMatchObject(REFUSED);
    await sql.query('BEGIN');
    await holdfast.enqueue(echo, { transaction: sql, workflowId: 'open' }, 1);
    await sql.query('COMMIT');
    await expect(holdfast.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject(REFUSED);
    await sql.end();
    expect(await workflows()).toBe(before + 1);
  });
});

test('a transaction in another database is refused, and what a statement of the caller fails with comes as it is', async () => {
  const sql = new pg.Client(Object.assign(new URL(bed.database.url), { pathname: '/postgres' }).href);
  await sql.connect();
  await sql.query('BEGIN');
  await expect(holdfast.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject({
    ...REFUSED,
    message: saying(/not in the database of Holdfast/),
    cause: { code: '3F000' },
  });
  await expect(holdfast.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject({ code: '25P02' });
  await sql.end();
});

describe('messages of errors say what to do', () => {
  test('a database that cannot be reached: why', async () => {
    const launched = Holdfast.launch({
      database: 'postgresql://nobody@127.0.0.1:1/nothing',
      workflows: [echo],
      launchTimeout: 500,
      logger: silentLogger,
    });
    await expect(launched).rejects.toMatchObject({
      code: 'LAUNCH_TIMEOUT',
      message: saying(/ECONNREFUSED/),
    });
  });

  test('a client of a database without Holdfast: that there is none', async () => {
    const connected = HoldfastClient.connect({ database: bed.database.url, schema: 'elsewhere', logger: silentLogger });
    await expect(connected).rejects.toMatchObject({
      code: 'SCHEMA_TOO_OLD',
      message: saying(/no Holdfast in schema "elsewhere"/),
    });
  });

  test('an environment variable DATABASE_URL that is no connection string: which form it has', async () => {
    vi.stubEnv('DATABASE_URL', 'localhost:5432/shop');
    const message = saying(/DATABASE_URL must be a connection string/);
    await expect(Holdfast.launch({ workflows: [echo] })).rejects.toMatchObject({ ...REFUSED, message });
    vi.unstubAllEnvs();
  });

  test.each([
    [{ workflows: ['echo'] }, /workflows\.0: must be a class/],
    [{ workflows: [echo], queues: ['mails'] }, /queues\.0: must be the definition of a queue/],
    [{ workflows: [echo], queues: [{ name: 'mails', concurency: 5 }] }, /\(Unrecognized key: "concurency"\)/],
    [{ workflows: [echo], errors: [1] }, /errors\.0: must be an error class, or its name and the class/],
    [{ workflows: [echo], lease: {} }, /lease: must be milliseconds as a number, or a text such as '10s'/],
    [{ workflows: [echo], queues: [{ name: 'mails', rateLimit: { limit: 1 } }] }, /rateLimit\.period: must be milli/],
    [{ workflows: [echo], database: '' }, /database: must be a connection string/],
    [{ workflows: [echo], database: 'not one' }, /database: must be a connection string/],
    [{ workflows: [echo], database: 'mysql://localhost/shop' }, /database: must be a connection string/],
    [{ workflows: [echo], database: 'postgresql://app:a#/b@localhost/shop' }, /^[^#]*percent-encoded[^#]*$/],
    [{ workflows: [echo], listenDatabase: 'localhost' }, /listenDatabase: must be a connection string/],
  ])('launch with %o', async (options, message) => {
    await expect(Holdfast.launch(wrong(options))).rejects.toMatchObject({
      ...REFUSED,
      message: saying(message),
    });
  });
});

test.each([
  'postgresql://app:a%23b@localhost:5432/shop?sslmode=require',
  'postgres://localhost',
  'postgres://app@/shop?host=/var/run/postgresql',
  'postgres://app:secret@one:5432,two:5433,three/shop?target_session_attrs=read-write',
  'postgres://app:a,b@localhost:5432/shop',
  'postgres://app:a,b@one,two:5433/shop',
  'postgres://%2Fvar%2Frun%2Fpostgresql/shop',
  'postgresql://app@[::1]:5432/shop',
  'socket:/var/run/postgresql?db=shop',
  '/var/run/postgresql shop',
])('a form of connection strings that the libraries read: %s', (text) => {
  expect(isConnectionString(text)).toBe(true);
});

test('a filter with an unknown status: which there are', async () => {
  await expect(holdfast.admin.list({ status: wrong('RUNNING') })).rejects.toMatchObject({
    ...REFUSED,
    message: saying(/status: .*"ENQUEUED"/),
  });
  await expect(holdfast.admin.list({ status: ['SUCCESS', wrong('RUNNING')] })).rejects.toMatchObject({
    ...REFUSED,
    message: saying(/status\.1: .*"ENQUEUED"/),
  });
});

test('an update has the type of its answer, and nothing else is taken for one', () => {
  const handle = holdfast.handle('anything');
  const list: WorkflowHandle[] = [handle, client.handle<number>('anything')];
  expect(list).toHaveLength(2);
  expectTypeOf(() => handle.update(adding, 1)).returns.resolves.toEqualTypeOf<number>();
  const wrongly = {
    // @ts-expect-error the answer is a number
    answer: (): Promise<string> => handle.update(adding, 1),
    // @ts-expect-error a query is no update
    query: () => handle.update(asking, 1),
    // @ts-expect-error a signal is no update
    signal: () => handle.update(approving, 'x'),
    // @ts-expect-error an update is no signal
    update: () => handle.signal(adding, 1),
  };
  expect(Object.keys(wrongly)).toHaveLength(4);
});
