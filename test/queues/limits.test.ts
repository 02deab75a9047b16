import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WorkflowHandle } from '../../src/index.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { ids, Live, worker } from './support/live.js';

let bed: Bed;
beforeEach(async () => {
  bed = await createBed();
});
afterEach(() => bed.close());

async function slots(queue: string): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM holdfast.workflow_status WHERE queue = $1 AND status = 'PENDING'`,
    [queue],
  );
  return rows[0]?.n ?? -1;
}

async function owned(executorId: string): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM holdfast.workflow_status WHERE executor_id = $1 AND status = 'PENDING'`,
    [executorId],
  );
  return rows[0]?.n ?? -1;
}

const resultsOf = (handles: readonly WorkflowHandle[]): Promise<unknown[]> =>
  Promise.all(handles.map((handle) => handle.result()));

test('the concurrency of a queue holds over three executors, each of another app version, and is used', async () => {
  const live = new Live();
  const work = worker(live);
  const queues = [{ name: 'q', concurrency: 4 }];
  const fleet = await Promise.all(
    ['1', '2', '3'].map((appVersion) => bed.launch({ workflows: [work], queues, appVersion, maxConcurrent: 3 })),
  );
  const results = await (fleet[0] as (typeof fleet)[0]).enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 60).map((id) => ({ args: [id, 'k', 10] })),
  );
  await resultsOf(results.map((result) => (result as { handle: WorkflowHandle<string> }).handle));
  expect(live.most.get('all')).toBe(4);
  expect(live.order).toHaveLength(60);
  const { rowCount } = await bed.sql.query('SELECT DISTINCT app_version FROM holdfast.workflow_status');
  expect(rowCount).toBeGreaterThan(1);
});

test('the concurrency of each executor holds for each of them', async () => {
  const lives = [new Live(), new Live()];
  const queues = [{ name: 'q', executorConcurrency: 2 }];
  const fleet = await Promise.all(lives.map((live) => bed.launch({ workflows: [worker(live)], queues })));
  const work = worker(new Live());
  const client = await bed.launch({ workflows: [work], maxConcurrent: 1, queues });
  await client.queues.pause('q');
  const results = await client.enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 40).map((id) => ({ args: [id, 'k', 20] })),
  );
  await client.close();
  await fleet[0]?.queues.resume('q');
  await resultsOf(
    results.flatMap((result) => (result.ok ? [fleet[0]?.handle(result.handle.workflowId) ?? result.handle] : [])),
  );
  expect(lives.map((live) => live.most.get('all'))).toEqual([2, 2]);
});

test('the concurrency of a key holds, and keys do not wait for each other', async () => {
  const live = new Live();
  const work = worker(live);
  const queues = [{ name: 'q', keyConcurrency: 2 }];
  const [one] = await Promise.all([1, 2].map(() => bed.launch({ workflows: [work], queues })));
  const results = await one?.enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 40).map((id, index) => ({ args: [id, `k${String(index % 4)}`, 10], key: `k${String(index % 4)}` })),
  );
  await resultsOf((results ?? []).flatMap((result) => (result.ok ? [result.handle] : [])));
  for (const key of ['k0', 'k1', 'k2', 'k3']) expect(live.most.get(key)).toBe(2);
  expect(live.most.get('all')).toBeGreaterThan(4);
});

test('C33 with one at a time for each key, a key runs in the order in which it was enqueued, with two executors at once', async () => {
  const live = new Live();
  const work = worker(live);
  const queues = [{ name: 'q', keyConcurrency: 1 }];
  const [one, two] = await Promise.all([1, 2].map(() => bed.launch({ workflows: [work], queues })));
  const handles: WorkflowHandle<string>[] = [];
  for (const [index, id] of ids('w', 30).reverse().entries()) {
    const key = `k${String(index % 2)}`;
    const handle = await (index % 3 === 0 ? one : two)?.enqueue(work, { queue: 'q', key, workflowId: id }, id, key, 3);
    if (handle !== undefined) handles.push(handle);
  }
  await resultsOf(handles);
  expect([live.most.get('k0'), live.most.get('k1')]).toEqual([1, 1]);
  const all = ids('w', 30).reverse();
  for (const parity of [0, 1]) {
    const expected = all.filter((_, index) => index % 2 === parity);
    expect(live.order.filter((id) => expected.includes(id))).toEqual(expected);
  }
});

test('C33 a candidate that moved to another queue meanwhile is dropped', async () => {
  const live = new Live();
  const work = worker(live);
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q' }, { name: 'other', concurrency: 1 }] });
  await holdfast.queues.pause('q');
  await holdfast.queues.pause('other');
  const handle = await holdfast.enqueue(work, { queue: 'q', workflowId: 'moves' }, 'moves', 'k', 0);
  await bed.sql.query(`BEGIN`);
  await bed.sql.query(`UPDATE holdfast.workflow_status SET queue = 'other' WHERE workflow_id = 'moves'`);
  await holdfast.queues.resume('q');
  await new Promise((resolve) => setTimeout(resolve, 150));
  await bed.sql.query('COMMIT');
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(live.order).toEqual([]);
  await holdfast.queues.resume('other');
  await handle.result();
  expect(live.order).toEqual(['moves']);
});

test('C32 limits hold when executors are killed and their leases expire: nothing is lost, doubled or leaked', async () => {
  const live = new Live();
  const queues = [{ name: 'q', concurrency: 6, keyConcurrency: 2 }];
  const work = worker(live);
  const dying = new Live();
  const dyingWork = worker(dying);
  const doomed = await Promise.all([1, 2].map(() => bed.launch({ workflows: [dyingWork], queues })));
  const results = await doomed[0]?.enqueueMany(
    dyingWork,
    { queue: 'q' },
    ids('w', 80).map((id, index) => ({ args: [id, `k${String(index % 5)}`, 15], key: `k${String(index % 5)}` })),
  );
  await waitUntil(() => dying.order.length > 4, 'the doomed run something');
  const [first, second] = doomed;
  await first?.close({ drainMs: 0 });
  const survivor = await bed.launch({ workflows: [work], queues });
  await bed.expireLease(second?.executorId ?? '');
  await resultsOf((results ?? []).flatMap((result) => (result.ok ? [survivor.handle(result.handle.workflowId)] : [])));
  expect(live.most.get('all')).toBeLessThanOrEqual(6);
  for (let key = 0; key < 5; key++) expect(live.most.get(`k${String(key)}`)).toBeLessThanOrEqual(2);
  expect(await slots('q')).toBe(0);
  const { rows } = await bed.sql.query<{ status: string; n: number }>(
    `SELECT status, count(*)::int AS n FROM holdfast.workflow_status GROUP BY status`,
  );
  expect(rows).toEqual([{ status: 'SUCCESS', n: 80 }]);
});

test('C32 what a dead executor ran keeps its slot until it is recovered, and an executor recovers within its own limit', async () => {
  const hang = new Live();
  const queues = [{ name: 'q', executorConcurrency: 2 }];
  // A heartbeat would bring them back.
  const dead = await Promise.all([1, 2].map(() => bed.launch({ workflows: [worker(hang)], queues, lease: '1h' })));
  await bed.sql.query(
    `SELECT holdfast.enqueue_workflow('work', jsonb_build_array('w' || n, 'k', 60000), 'q') FROM generate_series(1, 6) n`,
  );
  await waitUntil(async () => (await slots('q')) === 4, 'both run their two');
  const live = new Live();
  // Before the third one comes: it would take the two that wait.
  for (const executor of dead) await bed.expireLease(executor.executorId);
  const quick = await bed.launch({ workflows: [worker(live)], queues });
  await waitUntil(async () => (await owned(quick.executorId)) === 2, 'two are taken');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await owned(quick.executorId)).toBe(2);
  expect(await slots('q')).toBe(4);
  expect(live.most.get('all')).toBe(2);
});

test('C37 a rate limit holds over a restart: no window has more starts than it allows', async () => {
  const live = new Live();
  const work = worker(live);
  const queues = [{ name: 'q', rateLimit: { limit: 5, period: 400 } }];
  const first = await bed.launch({ workflows: [work], queues });
  const results = await first.enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 22).map((id) => ({ args: [id, 'k', 0] })),
  );
  await waitUntil(() => live.order.length >= 5, 'the first window is full');
  await first.close();
  const second = await bed.launch({ workflows: [work], queues });
  await resultsOf(results.flatMap((result) => (result.ok ? [second.handle(result.handle.workflowId)] : [])));
  const { rows } = await bed.sql.query<{ at: number }>(
    `SELECT (extract(epoch FROM owned_at) * 1000)::float8 AS at FROM holdfast.workflow_ownership ORDER BY owned_at`,
  );
  const starts = rows.map(({ at }) => at);
  expect(starts.length).toBeGreaterThanOrEqual(22);
  // Bodies begin a moment after their claims; the claims are what the limit speaks of.
  for (const [index, at] of starts.entries()) {
    expect(
      starts.filter((other) => other >= at && other < at + 395).length,
      `from start ${String(index)}`,
    ).toBeLessThanOrEqual(5);
  }
});

test('a rate limit of each key lets every key through at its own pace', async () => {
  const live = new Live();
  const work = worker(live);
  const queues = [{ name: 'q', keyRateLimit: { limit: 2, period: '1h' as const } }];
  const holdfast = await bed.launch({ workflows: [work], queues });
  await holdfast.enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 12).map((id, index) => ({ args: [id, 'k', 0], key: `k${String(index % 3)}` })),
  );
  await waitUntil(() => live.order.length >= 6, 'two of each key have run');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(live.order).toHaveLength(6);
});
