import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  defineWorkflow,
  type Holdfast,
  HoldfastClient,
  type Debounce,
  type EnqueueOptions,
  type WorkflowHandle,
} from '../../src/index.js';
import { startPgProxyFor } from '../support/pg-proxy.js';
import { createBed, gate, silentLogger, waitUntil, type Bed, type Gate } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;
const runs: string[] = [];
const gates = new Map<string, Gate>();
const echo = defineWorkflow('echo', (value: string) => {
  runs.push(value);
  return Promise.resolve(value);
});
const other = defineWorkflow('other', (value: string) => Promise.resolve(`other ${value}`));
const wait = defineWorkflow('wait', async (name: string) => {
  runs.push(name);
  let found = gates.get(name);
  if (found === undefined) gates.set(name, (found = gate()));
  await found.opened;
  return name;
});
const parent = defineWorkflow('parent', async (options: EnqueueOptions, values: string[]) => {
  const handles: WorkflowHandle<string>[] = [];
  for (const value of values) handles.push(await holdfast.enqueue(echo, options, value));
  return [handles.map(({ workflowId }) => workflowId === handles[0]?.workflowId), await handles.at(-1)?.result()];
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [echo, other, wait, parent],
    queues: [{ name: 'q' }, { name: 'paused' }],
  });
  await holdfast.queues.pause('paused');
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

const cancelled = { code: 'WORKFLOW_CANCELLED' };

async function dueInMs({ workflowId }: { readonly workflowId: string }): Promise<number> {
  const { rows } = await bed.sql.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM wake_at - created_at) * 1000)::float8 AS ms FROM holdfast.workflow_status WHERE workflow_id = $1`,
    [workflowId],
  );
  return rows[0]?.ms ?? -1;
}

/** Makes a delayed workflow due, so that tests need not wait. */
async function makeDue({ workflowId }: { readonly workflowId: string }): Promise<void> {
  await bed.sql.query(`UPDATE holdfast.workflow_status SET wake_at = clock_timestamp() WHERE workflow_id = $1`, [
    workflowId,
  ]);
}

// Singletons ---------------------------------------------------------------------------------------------------------

test('a singleton that skips returns the handle of the one that is there, until that has ended', async () => {
  const options: EnqueueOptions = { queue: 'q', singleton: { key: 'skips', onConflict: 'skip' } };
  const first = await holdfast.enqueue(wait, options, 'skips');
  expect((await client.enqueue('wait', options, 'not run')).workflowId).toBe(first.workflowId);
  await waitUntil(() => gates.has('skips'), 'it runs');
  gates.get('skips')?.open();
  expect(await first.result()).toBe('skips');
  expect((await client.enqueue(echo, options, 'next')).workflowId).not.toBe(first.workflowId);
  expect(runs).not.toContain('not run');
});

test('a singleton that cancels the older one takes its place, whether that waits, runs, or has ended', async () => {
  const options: EnqueueOptions = { queue: 'q', singleton: { key: 'replaces', onConflict: 'cancel-older' } };
  const waiting = await client.enqueue(wait, { ...options, delay: '1h' }, 'waiting');
  const running = await client.enqueue(wait, options, 'running');
  await expect(waiting.result()).rejects.toMatchObject(cancelled);
  await waitUntil(() => runs.includes('running'), 'the second runs');
  const last = await holdfast.enqueue(echo, options, 'last');
  await expect(running.result()).rejects.toMatchObject(cancelled);
  expect(await last.result()).toBe('last');
  const after = await holdfast.enqueue(echo, options, 'after');
  expect(await after.result()).toBe('after');
  expect(await last.status()).toBe('SUCCESS');
  expect((await holdfast.admin.audit(running.workflowId)).items).toMatchObject([{ verb: 'cancel', actor: 'enqueue' }]);
});

test('C35 many that cancel the older one at once leave exactly one, and each has its handle', async () => {
  const options: EnqueueOptions = { queue: 'paused', singleton: { key: 'races', onConflict: 'cancel-older' } };
  const handles = await Promise.all(
    Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? client : holdfast).enqueue(echo, options, `race ${String(n)}`)),
  );
  const statuses = await Promise.all(handles.map((handle) => handle.status()));
  expect(statuses.filter((status) => status === 'ENQUEUED')).toHaveLength(1);
  expect(statuses.filter((status) => status === 'CANCELLED')).toHaveLength(29);
});

test('of several in one call that cancel the older one, the last stays', async () => {
  const results = await client.enqueueMany(
    echo,
    { queue: 'paused', singleton: { key: 'in one call', onConflict: 'cancel-older' } },
    ['a', 'b', 'c'].map((value) => ({ args: [value] })),
  );
  const statuses = await Promise.all(
    results.map(async (result) => (result.ok ? await result.handle.status() : 'refused')),
  );
  expect(statuses.toSorted()).toEqual(['CANCELLED', 'CANCELLED', 'ENQUEUED']);
});

test('a singleton that is enqueued in a transaction cancels the older one exactly if that commits', async () => {
  const options: EnqueueOptions = { queue: 'paused', singleton: { key: 'transaction', onConflict: 'cancel-older' } };
  const older = await client.enqueue(echo, options, 'older');
  const database = new pg.Client({ connectionString: bed.database.url });
  await database.connect();
  await database.query('BEGIN');
  await client.enqueue(echo, { ...options, transaction: database }, 'rolled back');
  await database.query('ROLLBACK');
  expect(await older.status()).toBe('ENQUEUED');
  await database.query('BEGIN');
  const newer = await client.enqueue(echo, { ...options, transaction: database }, 'newer');
  await database.query('COMMIT');
  await database.end();
  expect([await older.status(), await newer.status()]).toEqual(['CANCELLED', 'ENQUEUED']);
});

test('C9 an enqueue that cancels the older one and loses its reply does not cancel itself', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  const options: EnqueueOptions = { queue: 'paused', singleton: { key: 'lost reply', onConflict: 'cancel-older' } };
  const older = await client.enqueue(echo, options, 'older');
  const lost = proxy.arm({ do: 'drop-reply' }, /enqueue_batch/, { times: 1 });
  const newer = await lossy.enqueue(echo, options, 'newer');
  await lost.happened;
  expect([await older.status(), await newer.status()]).toEqual(['CANCELLED', 'ENQUEUED']);
  await lossy.close();
  await proxy.close();
});

// Debounce -----------------------------------------------------------------------------------------------------------

const debounced = (key: string, more: Partial<Debounce> = {}): EnqueueOptions => ({
  queue: 'q',
  debounce: { key, delay: '1h', ...more },
});

test('debounced calls are one workflow, which has what the last call gave it', async () => {
  const first = await client.enqueue(echo, debounced('plain'), 'first');
  const second = await holdfast.enqueue(
    echo,
    { ...debounced('plain'), priority: 4, key: 'tenant', attributes: { n: 2 } },
    'second',
  );
  expect(second.workflowId).toBe(first.workflowId);
  expect(await holdfast.admin.get(first.workflowId)).toMatchObject({
    status: 'DELAYED',
    attributes: { n: 2 },
    queue: { priority: 4, key: 'tenant' },
  });
  expect(await dueInMs(first)).toBeGreaterThan(3_600_000);
  await makeDue(first);
  expect(await first.result()).toBe('second');
  const third = await holdfast.enqueue(echo, debounced('plain'), 'third');
  expect(third.workflowId).not.toBe(first.workflowId);
  expect(runs.filter((run) => ['first', 'second', 'third'].includes(run))).toEqual(['second']);
});

test('a debounced workflow starts by itself, a while after the last call', async () => {
  const options: EnqueueOptions = { debounce: { key: 'short', delay: 150 } };
  const handles: WorkflowHandle<string>[] = [];
  for (const value of ['s1', 's2', 's3']) handles.push(await client.enqueue(echo, options, value));
  expect(await handles[2]?.result()).toBe('s3');
  expect(runs).not.toContain('s1');
});

test('maxWait bounds how long calls can push the start back', async () => {
  const first = await client.enqueue(echo, debounced('bounded', { maxWait: '90m' }), 'a');
  expect(await dueInMs(first)).toBeCloseTo(3_600_000, -2);
  await bed.sql.query(
    `UPDATE holdfast.queue_debounce SET first_at = first_at - interval '1 hour' WHERE debounce_key = 'bounded'`,
  );
  await client.enqueue(echo, debounced('bounded', { maxWait: '90m' }), 'b');
  const due = await dueInMs(first);
  expect(due).toBeGreaterThan(29 * 60_000);
  expect(due).toBeLessThan(31 * 60_000);
  const soon = await client.enqueue(echo, debounced('bounded at once', { maxWait: 50 }), 'soon');
  expect(await soon.result()).toBe('soon');
});

test('a debounce key belongs to its queue and to the name of the workflow', async () => {
  const handles = [
    await client.enqueue(echo, debounced('scoped'), 'a'),
    await client.enqueue(other, debounced('scoped'), 'b'),
    await client.enqueue(echo, { ...debounced('scoped'), queue: 'paused' }, 'c'),
    await client.enqueue(echo, { debounce: { key: 'scoped', delay: '1h' } }, 'd'),
  ];
  expect(new Set(handles.map(({ workflowId }) => workflowId)).size).toBe(4);
});

test('what is due and still waits in line takes the last input, and keeps its place', async () => {
  const first = await client.enqueue(echo, { ...debounced('in line'), queue: 'paused' }, 'early');
  await makeDue(first);
  await waitUntil(async () => (await first.status()) === 'ENQUEUED', 'it is in line');
  const second = await client.enqueue(echo, { ...debounced('in line'), queue: 'paused' }, 'late');
  expect(second.workflowId).toBe(first.workflowId);
  expect(await first.status()).toBe('ENQUEUED');
  expect((await holdfast.admin.get(first.workflowId, { payload: true })).input).toMatchObject({
    value: ['late'],
  });
});

test('a debounced workflow that was cancelled or deleted is not the next call’s', async () => {
  const first = await client.enqueue(echo, debounced('gone'), 'a');
  await first.cancel();
  const second = await client.enqueue(echo, debounced('gone'), 'b');
  await holdfast.admin.delete(second.workflowId, { force: true });
  const third = await client.enqueue(echo, debounced('gone'), 'c');
  expect(new Set([first, second, third].map(({ workflowId }) => workflowId)).size).toBe(3);
});

test('many debounced calls at once are one workflow, and one run', async () => {
  const handles = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      (n % 2 === 0 ? client : holdfast).enqueue(echo, debounced('races'), `r${String(n)}`),
    ),
  );
  const many = await client.enqueueMany(echo, debounced('races'), [{ args: ['many 1'] }, { args: ['many 2'] }]);
  const ids = new Set(
    [...handles, ...many.flatMap((result) => (result.ok ? [result.handle] : []))].map(({ workflowId }) => workflowId),
  );
  expect(ids.size).toBe(1);
  await makeDue(handles[0] as WorkflowHandle<string>);
  expect(await handles[0]?.result()).toBe('many 2');
  expect(runs.filter((run) => /^(r\d|many)/.test(run))).toEqual(['many 2']);
});

test('of several debounced calls in one list, the first ones get the handle of the last', async () => {
  const results = await client.enqueueMany(
    echo,
    debounced('list'),
    ['l1', 'l2', 'l3'].map((value) => ({ args: [value] })),
  );
  const handles = results.flatMap((result) => (result.ok ? [result.handle] : []));
  expect(new Set(handles.map(({ workflowId }) => workflowId)).size).toBe(1);
  await makeDue(handles[0] as WorkflowHandle<string>);
  expect(await handles[0]?.result()).toBe('l3');
});

test('a call that races with the start either changes the input or is a workflow of its own: no call is lost', async () => {
  const outcomes: unknown[] = [];
  for (let round = 0; round < 20; round++) {
    const key = `start ${String(round)}`;
    const first = await client.enqueue(echo, { debounce: { key, delay: 1 } }, 'before');
    const second = await client.enqueue(echo, { debounce: { key, delay: 1 } }, `after ${String(round)}`);
    outcomes.push(await second.result());
    if (second.workflowId !== first.workflowId) expect(await first.result()).toBe('before');
  }
  expect(outcomes).toEqual(Array.from({ length: 20 }, (_, round) => `after ${String(round)}`));
});

test('C9 a debounced call whose reply was lost counts once, also when its workflow has started meanwhile', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  const options: EnqueueOptions = { debounce: { key: 'lost reply', delay: 500 } };
  const first = await client.enqueue(echo, options, 'lost first');
  const lost = proxy.arm({ do: 'drop-reply' }, /enqueue_batch/, { times: 1 });
  const hasEnded = gate();
  proxy.arm({ do: 'hold', until: hasEnded.opened }, /enqueue_batch/, { times: 1 });
  const second = lossy.enqueue(echo, options, 'lost second');
  await lost.happened;
  expect(await first.result()).toBe('lost second');
  hasEnded.open();
  const handle = await second;
  expect(handle.workflowId).toBe(first.workflowId);
  expect(runs.filter((run) => run.startsWith('lost'))).toEqual(['lost second']);
  await lossy.close();
  await proxy.close();
});

test('a call of a debounced workflow in a transaction counts exactly if that commits', async () => {
  const first = await client.enqueue(echo, debounced('transaction'), 'outside');
  const database = new pg.Client({ connectionString: bed.database.url });
  await database.connect();
  await database.query('BEGIN');
  await client.enqueue(echo, { ...debounced('transaction'), transaction: database }, 'inside');
  await database.query('ROLLBACK');
  await database.end();
  await makeDue(first);
  expect(await first.result()).toBe('outside');
});

test('a workflow can debounce and replace what it enqueues; what was recorded stands', async () => {
  const soon = await holdfast.start(parent, {}, { debounce: { key: 'of a parent', delay: 500 } }, ['p1', 'p2', 'p3']);
  expect(await soon.result()).toEqual([[true, true, true], 'p3']);
  const single = await holdfast.start(
    parent,
    {},
    { queue: 'q', singleton: { key: 'of a parent', onConflict: 'cancel-older' } },
    ['p4', 'p5'],
  );
  expect(((await single.result()) as unknown[])[1]).toBe('p5');
});

test('a debounce key is cleared away when its workflow has started', async () => {
  const first = await client.enqueue(echo, { debounce: { key: 'swept', delay: 1 } }, 'swept');
  await first.result();
  await client.enqueue(echo, debounced('kept'), 'kept');
  await bed.sql.query(`UPDATE holdfast.queue_debounce SET checked_at = checked_at - interval '2 minutes'`);
  await bed.sql.query('SELECT holdfast.clear_deduplication(10000)');
  const { rows } = await bed.sql.query<{ key: string }>(
    `SELECT debounce_key AS key FROM holdfast.queue_debounce WHERE debounce_key IN ('swept', 'kept')`,
  );
  expect(rows).toEqual([{ key: 'kept' }]);
});

test.each<[string, EnqueueOptions]>([
  ['debounce with delay', { delay: 5, debounce: { key: 'k', delay: 5 } }],
  ['debounce with a singleton', { singleton: { key: 'k', onConflict: 'skip' }, debounce: { key: 'k', delay: 5 } }],
  [
    'a singleton with deduplication',
    { singleton: { key: 'k', onConflict: 'skip' }, deduplication: { id: 'k', onConflict: 'attach' } },
  ],
  ['a debounce of no time', { debounce: { key: 'k', delay: 0 } }],
  ['a debounce without a key', { debounce: { key: '', delay: 5 } }],
  ['an unknown conflict', { singleton: { key: 'k', onConflict: 'replace' as 'skip' } }],
  ['an unknown option', { debounce: { key: 'k', delay: 5, wait: 1 } as Debounce }],
])('%s is refused before anything is written', async (_, options) => {
  await expect(client.enqueue(echo, { ...options, workflowId: 'refused' }, 'x')).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  await expect(holdfast.admin.get('refused')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
});
