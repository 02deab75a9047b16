import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, HoldfastClient, type Holdfast } from '../../src/index.js';
import { startPgProxyFor, turnedAwayTwice } from '../support/pg-proxy.js';
import { createBed, gate, silentLogger, type Bed, waitUntil } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;
const go = gate();
const echo = defineWorkflow('echo', (value: string) => Promise.resolve(value));
const wait = defineWorkflow('wait', () => go.opened);
const parent = defineWorkflow('parent', async (queue: string) => {
  const handle = await holdfast.enqueue(echo, { queue, workflowId: `child in ${queue}` }, 'child');
  return handle.result();
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [echo, wait, parent] });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function pausedQueue(name: string): Promise<void> {
  await client.queues.define({ name, concurrency: 1 });
  await client.queues.pause(name);
}

test('a queue is deleted when nothing that has not ended is in it; what has ended stays', async () => {
  await client.queues.define({ name: 'empty', rateLimit: { limit: 10, period: '1h' } });
  const handle = await client.enqueue(echo, { queue: 'empty' }, 'done');
  expect(await handle.result()).toBe('done');
  await client.queues.delete('empty');
  expect(await handle.status()).toBe('SUCCESS');
  await expect(client.queues.get('empty')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  await expect(client.queues.delete('empty')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  await expect(client.enqueue(echo, { queue: 'empty' }, 'x')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  expect((await bed.sql.query('SELECT FROM holdfast.queue_start')).rows).toEqual([]);
});

test.each([
  ['waits', {}],
  ['is delayed', { delay: '1h' as const }],
])('a queue in which a workflow %s is not deleted', async (_, options) => {
  const queue = `with ${JSON.stringify(options)}`;
  await pausedQueue(queue);
  const handle = await client.enqueue(echo, { queue, ...options }, 'x');
  await expect(holdfast.queues.delete(queue)).rejects.toMatchObject({ code: 'QUEUE_NOT_EMPTY', workflows: 1 });
  await handle.cancel();
  await holdfast.queues.delete(queue);
});

test('a queue that runs something is not deleted, and can be released: what is in it goes on without limits', async () => {
  await client.queues.define({ name: 'released', concurrency: 1 });
  const running = await client.enqueue(wait, { queue: 'released' });
  await waitUntil(async () => (await running.status()) === 'PENDING', 'it runs');
  const waiting = await client.enqueue(echo, { queue: 'released', key: 'k' }, 'freed');
  await expect(client.queues.delete('released')).rejects.toMatchObject({ code: 'QUEUE_NOT_EMPTY', workflows: 2 });
  await client.queues.delete('released', { workflows: 'release' });
  expect(await waiting.result()).toBe('freed');
  expect(await running.status()).toBe('PENDING');
  go.open();
  await running.result();
});

test('what is resumed into a queue that is gone runs', async () => {
  await pausedQueue('gone');
  const handle = await client.enqueue(echo, { queue: 'gone' }, 'resumed');
  await handle.cancel();
  await client.queues.delete('gone');
  await client.admin.resume(handle.workflowId);
  expect(await handle.result()).toBe('resumed');
});

test('a queue into which an open transaction enqueues is not deleted under it', async () => {
  await pausedQueue('held');
  const database = new pg.Client({ connectionString: bed.database.url });
  await database.connect();
  await database.query('BEGIN');
  await client.enqueue(echo, { queue: 'held', transaction: database, workflowId: 'unseen' }, 'x');
  await expect(client.queues.delete('held')).rejects.toMatchObject({ code: 'QUEUE_NOT_EMPTY', workflows: 0 });
  await database.query('COMMIT');
  await database.end();
  await expect(client.queues.delete('held')).rejects.toMatchObject({ code: 'QUEUE_NOT_EMPTY', workflows: 1 });
});

test('C9 a deletion whose reply was lost is found to have happened', async () => {
  await pausedQueue('lost reply');
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  const lost = proxy.arm({ do: 'drop-reply' }, /delete_queue/, { times: 1 });
  await lossy.queues.delete('lost reply');
  await lost.happened;
  await lossy.close();
  await proxy.close();
});

test('a deletion that could not be sent at first has not happened: a queue that never was is not found', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const cutOff = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  await proxy.admit('closed-at-once');
  proxy.cutAll();
  // Until there is no connection left: what is sent on one that is gone may have happened.
  const read = expect(cutOff.queues.list()).resolves.toBeDefined();
  await turnedAwayTwice(proxy);
  const deletion = expect(cutOff.queues.delete('never was')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  await turnedAwayTwice(proxy);
  await proxy.admit('open');
  await Promise.all([read, deletion]);
  await cutOff.close();
  await proxy.close();
});

test('workflows are listed by queue and key, and counted for all queues', async () => {
  await pausedQueue('listed');
  await pausedQueue('empty one');
  for (const key of ['a', 'a', 'b']) await client.enqueue(echo, { queue: 'listed', key }, key);
  await client.enqueue(echo, { queue: 'listed', delay: '1h' }, 'later');
  expect((await client.admin.list({ queue: 'listed' })).items).toHaveLength(4);
  const page = await client.admin.list({ queue: 'listed', key: 'a', status: 'ENQUEUED', limit: 1 });
  expect(page.items).toMatchObject([{ queue: { name: 'listed', key: 'a' } }]);
  expect(page.nextCursor).not.toBeNull();
  expect((await client.admin.list({ queue: 'nowhere' })).items).toEqual([]);
  const queues = await client.queues.list({ counts: true });
  expect(queues.find(({ name }) => name === 'listed')).toMatchObject({
    waiting: 3,
    delayed: 1,
    running: 0,
    blocked: 0,
  });
  expect(queues.find(({ name }) => name === 'empty one')).toMatchObject({ waiting: 0, delayed: 0 });
  expect(await client.queues.get('listed')).toMatchObject({ waiting: 3, delayed: 1 });
});

test('C9 C28 a workflow whose enqueuing of a child lost its reply has enqueued one', async () => {
  await client.queues.define({ name: 'children' });
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await bed.launch({
    workflows: [parent, echo],
    database: proxy.connectionString(bed.database.url),
    appVersion: 'lossy',
  });
  const lost = proxy.arm({ do: 'drop-reply' }, /record_enqueue/, { times: 1 });
  const handle = await lossy.start(parent, { workflowId: 'lost' }, 'children');
  await lost.happened;
  expect(await handle.result()).toBe('child');
  expect((await client.admin.list({ parentId: 'lost' })).items).toHaveLength(1);
  expect((await client.admin.steps('lost')).items.map(({ kind }) => kind)).toEqual(['enqueue', 'outcome']);
  await lossy.close();
  await proxy.close();
});
