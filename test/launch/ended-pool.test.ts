import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  defineDataSource,
  defineSignal,
  defineWorkflow,
  Holdfast,
  HoldfastClient,
  runStep,
  runTransaction,
  sleep,
  type Logger,
  type TransactionOptions,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

test('C56 a launch on a pool that was ended says so at once, also on one of a data source', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  await pool.end();
  const options = { workflows: [], logger: silentLogger };
  await expect(Holdfast.launch({ ...options, database: pool })).rejects.toMatchObject({ code: 'POOL_ENDED' });
  await expect(HoldfastClient.connect({ database: pool })).rejects.toMatchObject({ code: 'POOL_ENDED' });
  const dataSources = [defineDataSource('ended', pool)];
  await expect(Holdfast.launch({ ...options, database: bed.database.url, dataSources })).rejects.toMatchObject({
    code: 'DATA_SOURCE_INVALID',
    cause: { code: 'POOL_ENDED' },
  });
});

test('C56 a pool that is ended under a running Holdfast: it can be closed, refuses what comes after, and others go on', async () => {
  const [begun, goOn] = [gate(), gate()];
  const runs: string[] = [];
  const work = (name: string) =>
    defineWorkflow('work', async () => {
      await runStep('first', async () => {
        runs.push(`first of ${name}`);
      });
      if (name === 'left') {
        begun.open();
        await goOn.opened;
      }
      return runStep('second', () => Promise.resolve(`second of ${name}`));
    });
  const [workOfLeft, workOfOther] = [work('left'), work('other')];
  const pool = new pg.Pool({ connectionString: bed.database.url });
  const left = await bed.launch({ workflows: [workOfLeft], database: pool, executorId: 'left' });
  const handle = await left.start(workOfLeft, { workflowId: 'w' });
  const told = handle.result().catch((error: unknown) => error);
  await begun.opened;
  await pool.end();
  expect(await told).toMatchObject({ code: 'POOL_ENDED' });
  goOn.open();
  await waitUntil(() => left.health().running === 0, 'the execution has been given up');
  await left.close();
  await expect(left.start(workOfLeft, {})).rejects.toMatchObject({ code: 'CLOSED' });

  const other = await bed.launch({ workflows: [workOfOther], executorId: 'other' });
  await bed.expireLease('left');
  expect(await other.handle('w').result()).toBe('second of other');
  expect(runs).toEqual(['first of left']);
});

const idle = defineWorkflow('idle', () => sleep('1h'));
const news = defineSignal<string>('news');

const CALLS: Record<string, (holdfast: Holdfast) => Promise<unknown>> = {
  start: (holdfast) => holdfast.start(idle, {}),
  enqueue: (holdfast) => holdfast.enqueue(idle, {}),
  enqueueMany: (holdfast) => holdfast.enqueueMany(idle, {}, [{ args: [] }, { args: [] }]),
  send: (holdfast) => holdfast.send('idle', 'topic', 1),
  signal: (holdfast) => holdfast.handle('idle').signal(news, 'text'),
  getEvent: (holdfast) => holdfast.getEvent('idle', 'key'),
  result: (holdfast) => holdfast.handle('idle').result(),
  status: (holdfast) => holdfast.handle('idle').status(),
  readStream: async (holdfast) => {
    for await (const entry of holdfast.readStream('idle', 'key')) return entry;
    return undefined;
  },
  cancel: (holdfast) => holdfast.admin.cancel('idle'),
  list: (holdfast) => holdfast.admin.list(),
  queues: (holdfast) => holdfast.queues.list(),
  schedules: (holdfast) => holdfast.schedules.list(),
  lease: (holdfast) => holdfast.leases.withLease('name', { ttl: '1s' }, () => Promise.resolve()),
  outbox: (holdfast) => holdfast.outbox.add('topic', 1),
  metrics: (holdfast) => holdfast.metricsText(),
};

test('C56 calls on a pool that was ended fail at once and say what to do, those that wait already too', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  const complaints: (Record<string, unknown> | undefined)[] = [];
  const complain: Logger['warn'] = (_, fields) => complaints.push(fields);
  const logger: Logger = { ...silentLogger, warn: complain, error: complain };
  const holdfast = await bed.launch({ workflows: [idle], database: pool, logger, lease: '2s' });
  await holdfast.start(idle, { workflowId: 'idle' });
  const iterator = holdfast.readStream('idle', 'key')[Symbol.asyncIterator]();
  const waiting = [holdfast.getEvent('idle', 'key'), holdfast.handle('idle').result(), iterator.next()];
  const told = Promise.all(waiting.map((call) => expect(call).rejects.toMatchObject({ code: 'POOL_ENDED' })));
  await pool.end();
  await told;
  for (const call of Object.values(CALLS)) {
    await expect(call(holdfast)).rejects.toMatchObject({
      code: 'POOL_ENDED',
      message: expect.stringContaining('Close Holdfast first') as string,
    });
  }
  await waitUntil(() => complaints.some((fields) => fields?.['code'] === 'POOL_ENDED'), 'the log says so, too');
  await holdfast.close();
});

test('C56 a transaction on a pool that was ended gives its workflow up; one on that of a data source is left to others', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  const beside = new pg.Pool({ connectionString: bed.database.url });
  const app = defineDataSource<pg.PoolClient>('app', beside);
  const goOn = gate();
  const arrived: string[] = [];
  const define = (name: string, options: TransactionOptions) =>
    defineWorkflow(name, async () => {
      arrived.push(name);
      await goOn.opened;
      return runTransaction('write', () => Promise.resolve(name), options);
    });
  const onOwn = define('on-own', {});
  const onApp = define('on-app', { dataSource: app });
  const first = await bed.launch({ workflows: [onOwn], database: pool });
  const second = await bed.launch({ workflows: [onApp], dataSources: [app] });
  const own = (await first.start(onOwn, {})).result();
  const told = expect(own).rejects.toMatchObject({ code: 'POOL_ENDED' });
  const onAppHandle = await second.start(onApp, { workflowId: 'on-app' });
  await waitUntil(() => arrived.length === 2, 'both run');
  await Promise.all([beside.end(), pool.end()]);
  goOn.open();
  await told;
  await waitUntil(() => first.health().running === 0, 'the execution is given up');
  expect(await onAppHandle.status()).toBe('PENDING');
  await second.close();
  const anew = new pg.Pool({ connectionString: bed.database.url });
  const other = defineDataSource<pg.PoolClient>('app', anew);
  const third = await bed.launch({ workflows: [define('on-app', { dataSource: other })], dataSources: [other] });
  expect(await third.handle('on-app').result()).toBe('on-app');
  await Promise.all([first.close(), third.close()]);
  await anew.end();
});

test('an sql of postgres that was ended makes no difference: Holdfast has connections of its own', async () => {
  const sql = postgres(bed.database.url);
  const holdfast = await bed.launch({ workflows: [idle], database: sql });
  await sql.end();
  const handle = await holdfast.start(idle, {});
  await handle.cancel();
  expect(await handle.status()).toBe('CANCELLED');
  await holdfast.close();
});
