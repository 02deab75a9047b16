import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineWorkflow, type Holdfast, type WorkflowHandle } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { ids, Live, worker } from './support/live.js';

let bed: Bed;
let live: Live;
let work: ReturnType<typeof worker>;
beforeEach(async () => {
  bed = await createBed();
  live = new Live();
  work = worker(live);
});
afterEach(() => bed.close());

/** Enqueues while nothing is started, and then lets go. */
async function together(holdfast: Holdfast, queue: string, enqueue: () => Promise<unknown>): Promise<void> {
  await holdfast.queues.pause(queue);
  await enqueue();
  await holdfast.queues.resume(queue);
}

async function statusOf(id: string): Promise<string | undefined> {
  const { rows } = await bed.sql.query<{ status: string }>(
    'SELECT status FROM holdfast.workflow_status WHERE workflow_id = $1',
    [id],
  );
  return rows[0]?.status;
}

const successes = async (): Promise<number> => {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM holdfast.workflow_status WHERE status = 'SUCCESS'`,
  );
  return rows[0]?.n ?? -1;
};

test.each([
  ['without limits', {}],
  ['with a limit', { concurrency: 20 }],
])(
  'one tenant with 5,000 waiting does not starve another with 10: the ten are among the first 1 %% (%s)',
  async (_, limits) => {
    const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', ...limits }], maxConcurrent: 20 });
    await together(holdfast, 'q', async () => {
      await holdfast.enqueueMany(
        work,
        { queue: 'q', key: 'large' },
        ids('large', 5_000).map((id) => ({ args: [id, 'large', 0] })),
      );
      await holdfast.enqueueMany(
        work,
        { queue: 'q', key: 'small' },
        ids('small', 10).map((id) => ({ args: [id, 'small', 0] })),
      );
    });
    await waitUntil(() => live.order.filter((id) => id.startsWith('small')).length === 10, 'the ten are done');
    const last = Math.max(...ids('small', 10).map((id) => live.order.indexOf(id)));
    expect(last).toBeLessThan(50);
  },
);

test('keys take turns also when one claim has room for one workflow only', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  await together(holdfast, 'q', () =>
    holdfast.enqueueMany(
      work,
      { queue: 'q' },
      ['a', 'a', 'a', 'a', 'b', 'b', 'c', 'c'].map((key, n) => ({ args: [`${key}${String(n)}`, key, 1], key })),
    ),
  );
  await waitUntil(() => live.order.length === 8, 'all are done');
  expect(live.order.map((id) => id.charAt(0)).join('')).toBe('abcabcaa');
});

test('lower priority numbers go first, and a priority can be changed while its workflow waits', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  await together(holdfast, 'q', async () => {
    for (const [id, priority] of [
      ['late', 5],
      ['soon', 1],
      ['default', 0],
      ['urgent', -3],
      ['changed', 9],
    ] as const) {
      await holdfast.enqueue(work, { queue: 'q', priority, workflowId: id }, id, 'k', 1);
    }
    expect(await holdfast.admin.prioritize('changed', { priority: -9, actor: 'ops' })).toMatchObject({
      result: 'done',
      statusAfter: 'ENQUEUED',
    });
    expect(await holdfast.admin.prioritize('changed', { priority: -9 })).toMatchObject({ result: 'unchanged' });
  });
  await waitUntil(() => live.order.length === 5, 'all are done');
  expect(live.order).toEqual(['changed', 'urgent', 'default', 'soon', 'late']);
  await waitUntil(async () => (await statusOf('changed')) === 'SUCCESS', 'it is on record');
  await expect(holdfast.admin.prioritize('changed', { priority: 1 })).rejects.toMatchObject({ code: 'WORKFLOW_STATE' });
  expect((await holdfast.admin.audit('changed')).items).toMatchObject([
    { verb: 'prioritize', actor: 'ops', detail: { from: 9, to: -9 } },
  ]);
});

test('changing the priority of a running workflow takes nothing away from its execution', async () => {
  const entered = gate();
  const go = gate();
  const held = defineWorkflow('held', async () => {
    entered.open();
    await go.opened;
    return 'done';
  });
  const holdfast = await bed.launch({ workflows: [held], queues: [{ name: 'q' }] });
  const handle = await holdfast.enqueue(held, { queue: 'q' });
  await entered.opened;
  await holdfast.admin.prioritize(handle.workflowId, { priority: 3 });
  go.open();
  expect(await handle.result()).toBe('done');
  const details = await holdfast.admin.get(handle.workflowId);
  expect(details).toMatchObject({ epoch: 1, queue: { name: 'q', priority: 3, key: null, deduplicationId: null } });
});

test('a delayed workflow starts when its time has come, and not before', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  const handle = await holdfast.enqueue(work, { queue: 'q', delay: 300 }, 'a', 'k', 0);
  const plain = await holdfast.enqueue(work, { delay: 300 }, 'b', 'k', 0);
  expect(await handle.status()).toBe('DELAYED');
  await Promise.all([handle.result(), plain.result()]);
  const { rows } = await bed.sql.query<{ waited: number }>(
    `SELECT (extract(epoch FROM started_at - created_at) * 1000)::float8 AS waited FROM holdfast.workflow_status`,
  );
  for (const { waited } of rows) expect(waited).toBeGreaterThanOrEqual(300);
});

test('a paused queue starts nothing, and goes on when it is resumed; what runs is not touched', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q' }] });
  const running = await holdfast.enqueue(work, { queue: 'q' }, 'running', 'k', 300);
  await waitUntil(() => live.order.length === 1, 'it runs');
  await holdfast.queues.pause('q');
  const waiting = await holdfast.enqueue(work, { queue: 'q' }, 'waiting', 'k', 0);
  expect(await running.result()).toBe('running');
  expect(await holdfast.queues.get('q')).toMatchObject({ paused: true, waiting: 1, running: 0, delayed: 0 });
  expect(await waiting.status()).toBe('ENQUEUED');
  await holdfast.queues.resume('q');
  expect(await waiting.result()).toBe('waiting');
});

test('limits that are changed hold from the next claim on; a launch with the same declaration leaves them', async () => {
  const queues = [{ name: 'q', concurrency: 1 }];
  const holdfast = await bed.launch({ workflows: [work], queues });
  await holdfast.enqueueMany(
    work,
    { queue: 'q' },
    ids('w', 100).map((id) => ({ args: [id, 'k', 30] })),
  );
  await waitUntil(() => live.order.length >= 2, 'they run one by one');
  expect(live.most.get('all')).toBe(1);
  await holdfast.queues.update('q', { concurrency: 5, rateLimit: { limit: 1_000, period: '1m' } });
  await waitUntil(() => live.most.get('all') === 5, 'five run');
  const again = await bed.launch({ workflows: [], queues });
  expect(await again.queues.list()).toMatchObject([
    { name: 'q', concurrency: 5, rateLimit: { limit: 1_000, period: 60_000 } },
  ]);
  await again.queues.update('q', { rateLimit: null });
  expect(await again.queues.get('q')).toMatchObject({ concurrency: 5, rateLimit: null });
  const changed = await bed.launch({ workflows: [], queues: [{ name: 'q', concurrency: 2 }] });
  expect(await changed.queues.get('q')).toMatchObject({ concurrency: 2 });
  await waitUntil(async () => (await successes()) === 100, 'all are done');
  expect(live.most.get('all')).toBe(5);
});

test('C31 the backlog of one queue, full to its limit, does not delay another queue', async () => {
  const holdfast = await bed.launch({
    workflows: [work],
    queues: [{ name: 'full', concurrency: 2 }, { name: 'free' }],
    maxConcurrent: 10,
  });
  await holdfast.enqueueMany(
    work,
    { queue: 'full' },
    ids('f', 2_000).map((id) => ({ args: [id, 'k', 60_000] })),
  );
  await waitUntil(() => live.order.length === 2, 'it is full');
  const handles = await holdfast.enqueueMany(
    work,
    { queue: 'free' },
    ids('g', 50).map((id) => ({ args: [id, 'g', 0] })),
  );
  await Promise.all(handles.flatMap((result) => (result.ok ? [result.handle.result()] : [])));
  expect(live.most.get('k')).toBe(2);
});

test('C31 an open transaction on a queue, or on the first of its line, does not delay others', async () => {
  const holdfast = await bed.launch({
    workflows: [work],
    queues: [{ name: 'held', concurrency: 5 }, { name: 'line' }, { name: 'other', concurrency: 5 }],
  });
  await holdfast.queues.pause('line');
  await holdfast.enqueue(work, { queue: 'line', workflowId: 'first' }, 'first', 'k', 0);
  const second = await holdfast.enqueue(work, { queue: 'line' }, 'second', 'k', 0);
  await holdfast.queues.resume('line');
  await waitUntil(() => live.order.length === 2, 'both have run');
  await holdfast.queues.pause('line');
  await holdfast.enqueue(work, { queue: 'line', workflowId: 'locked' }, 'locked', 'k', 0);
  const behind = await holdfast.enqueue(work, { queue: 'line' }, 'behind', 'k', 0);
  await bed.sql.query('BEGIN');
  await bed.sql.query(`SELECT FROM holdfast.queue WHERE name = 'held' FOR UPDATE`);
  await bed.sql.query(`SELECT FROM holdfast.workflow_status WHERE workflow_id = 'locked' FOR UPDATE`);
  await holdfast.queues.resume('line');
  const held = await holdfast.enqueue(work, { queue: 'held' }, 'held', 'k', 0);
  const other = await holdfast.enqueue(work, { queue: 'other' }, 'other', 'k', 0);
  await Promise.all([other.result(), behind.result(), second.result()]);
  expect(await held.status()).toBe('ENQUEUED');
  expect(await statusOf('locked')).toBe('ENQUEUED');
  await bed.sql.query('COMMIT');
  await Promise.all([held.result(), holdfast.handle('locked').result()]);
});

test('C17 names that an executor does not know are left, whatever waits behind them runs', async () => {
  const unknown = defineWorkflow('newer', () => Promise.resolve('new'));
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', keyConcurrency: 1 }] });
  await bed.sql.query(`SELECT holdfast.enqueue_workflow('newer', '[]', 'q', 'unknown', p_key => 'k')`);
  expect(await (await holdfast.enqueue(work, { queue: 'q', key: 'k' }, 'known', 'k', 0)).result()).toBe('known');
  expect(await statusOf('unknown')).toBe('ENQUEUED');
  await bed.launch({ workflows: [unknown] });
  expect(await holdfast.handle('unknown').result()).toBe('new');
});

test('C41 an item that cannot be run here, or not be read, does not block its queue', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  await bed.sql.query(`
    SELECT holdfast.enqueue_workflow('work', '["x"]', 'q', 'no-such-object', p_instance => 'nobody');
    SELECT holdfast.enqueue_workflow('work', '["x"]', 'q', 'unreadable');
    UPDATE holdfast.workflow_input SET input = 'no JSON' WHERE workflow_id = 'unreadable'`);
  expect(await (await holdfast.enqueue(work, { queue: 'q' }, 'healthy', 'k', 0)).result()).toBe('healthy');
  await waitUntil(async () => (await statusOf('unreadable')) === 'BLOCKED', 'the unreadable one waits for a person');
  expect(await statusOf('no-such-object')).toBe('DELAYED');
});

test('C41 an item that kills its process ends as a dead letter, and frees its slot', async () => {
  const queues = [{ name: 'q', concurrency: 1 }];
  const first = await bed.launch({ workflows: [work], queues });
  const killer = await first.enqueue(work, { queue: 'q', maxAttempts: 1 }, 'killer', 'k', 60_000);
  await waitUntil(() => live.order.length === 1, 'it runs');
  const behind = await first.enqueue(work, { queue: 'q' }, 'behind', 'k', 0);
  const second = await bed.launch({ workflows: [work] });
  await bed.expireLease(first.executorId);
  await expect(second.handle(killer.workflowId).result()).rejects.toMatchObject({ code: 'MAX_ATTEMPTS_EXCEEDED' });
  expect(await second.handle(behind.workflowId).result()).toBe('behind');
});

test('what no execution has owned is taken by an executor of any app version, and stays with that one', async () => {
  const blue = await bed.launch({ workflows: [work], queues: [{ name: 'q' }], appVersion: 'blue' });
  await blue.queues.pause('q');
  const handle = await blue.enqueue(work, { queue: 'q' }, 'a', 'k', 0);
  await blue.close();
  const green = await bed.launch({ workflows: [work], appVersion: 'green' });
  await green.queues.resume('q');
  await green.handle(handle.workflowId).result();
  expect(await green.admin.get(handle.workflowId)).toMatchObject({ appVersion: 'green' });
});

test('C36 cancel and resume keep queue, key and priority, and the place in the line; a delay is over', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  await holdfast.queues.pause('q');
  const handles: Record<string, WorkflowHandle<string>> = {};
  for (const id of ['a', 'b', 'c']) {
    handles[id] = await holdfast.enqueue(work, { queue: 'q', key: 'k', priority: 2, workflowId: id }, id, 'k', 0);
  }
  handles['d'] = await holdfast.enqueue(work, { queue: 'q', key: 'k', workflowId: 'd', delay: '1h' }, 'd', 'k', 0);
  await holdfast.admin.cancel(['a', 'd']);
  await holdfast.admin.resume(['d', 'a']);
  expect(await holdfast.admin.get('a')).toMatchObject({
    status: 'ENQUEUED',
    queue: { name: 'q', priority: 2, key: 'k' },
  });
  expect(await holdfast.admin.get('d')).toMatchObject({ status: 'ENQUEUED', wakeAt: null });
  await holdfast.queues.resume('q');
  await Promise.all(Object.values(handles).map((handle) => handle.result()));
  expect(live.order).toEqual(['d', 'a', 'b', 'c']);
});

test('cancelling a running workflow frees its slot', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }] });
  const stuck = await holdfast.enqueue(work, { queue: 'q' }, 'stuck', 'k', 60_000);
  await waitUntil(() => live.order.length === 1, 'it runs');
  const next = await holdfast.enqueue(work, { queue: 'q' }, 'next', 'k', 0);
  await stuck.cancel();
  expect(await next.result()).toBe('next');
});

test('a fork of a queued workflow waits in the same queue', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q' }] });
  const handle = await holdfast.enqueue(work, { queue: 'q', key: 'k', priority: 4 }, 'source', 'k', 0);
  await handle.result();
  await holdfast.queues.pause('q');
  const { workflowId } = await holdfast.admin.fork(handle.workflowId, { fromStep: 0 });
  expect(await holdfast.admin.get(workflowId)).toMatchObject({
    status: 'ENQUEUED',
    queue: { name: 'q', key: 'k', priority: 4 },
  });
  await holdfast.queues.resume('q');
  expect(await holdfast.handle(workflowId).result()).toBe('source');
});

test('a workflow timeout begins when the workflow is claimed, not when it is enqueued', async () => {
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q' }] });
  await holdfast.queues.pause('q');
  const handle = await holdfast.enqueue(work, { queue: 'q', timeout: '1h' }, 'a', 'k', 0);
  const deadline = async (): Promise<unknown> => {
    const { rows } = await bed.sql.query(
      `SELECT (extract(epoch FROM s.deadline - o.owned_at) / 60)::float8 AS minutes, s.deadline IS NOT NULL AS runs
         FROM holdfast.workflow_status s LEFT JOIN holdfast.workflow_ownership o USING (workflow_id)
        WHERE s.workflow_id = $1`,
      [handle.workflowId],
    );
    return rows;
  };
  expect(await deadline()).toEqual([{ minutes: null, runs: false }]);
  await holdfast.queues.resume('q');
  expect(await handle.result()).toBe('a');
  expect(await deadline()).toEqual([{ minutes: 60, runs: true }]);
});

test('C38 what is idle asks the database no more often with 35 queues than with none', async () => {
  const calls = async (): Promise<{ all: number; claims: number }> => {
    await bed.sql.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await bed.sql.query<{ all: number; claims: number }>(
      `SELECT coalesce(sum(calls), 0)::int AS all, coalesce(sum(calls) FILTER (WHERE funcname = 'claim_work'), 0)::int AS claims
         FROM pg_stat_user_functions WHERE schemaname = 'holdfast'`,
    );
    return rows[0] ?? { all: 0, claims: 0 };
  };
  await bed.sql.query(`ALTER DATABASE ${bed.database.name} SET track_functions = 'all'`);
  const pollInterval = 50;
  const claims = 60;
  // How many functions run for one look for work. A machine under load only makes fewer looks of it.
  const measure = async (): Promise<number> => {
    const idle = await bed.launch({ workflows: [work], pollInterval });
    const since = performance.now();
    const before = await calls();
    await waitUntil(async () => (await calls()).claims - before.claims >= claims, 'it has looked often enough');
    const after = await calls();
    // The least jitter, and half of that again for what the statistics show late.
    expect(performance.now() - since).toBeGreaterThan((claims * pollInterval * 0.75) / 2);
    await idle.close();
    return (after.all - before.all) / (after.claims - before.claims);
  };
  const without = await measure();
  const definer = await bed.launch({
    workflows: [work],
    queues: ids('q', 35).map((name) => ({ name, concurrency: 1 })),
  });
  await definer.close();
  expect(await measure()).toBeLessThan(without * 1.3);
});

test('C31 C38 a queue that somebody keeps locked is not asked for all the time', async () => {
  await bed.sql.query(`ALTER DATABASE ${bed.database.name} SET track_functions = 'all'`);
  const holdfast = await bed.launch({ workflows: [work], queues: [{ name: 'q', concurrency: 1 }], pollInterval: 500 });
  await bed.sql.query('BEGIN');
  await bed.sql.query(`SELECT FROM holdfast.queue WHERE name = 'q' FOR UPDATE`);
  const handle = await holdfast.enqueue(work, { queue: 'q' }, 'a', 'k', 0);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await bed.sql.query('COMMIT');
  await handle.result();
  await holdfast.close();
  const { rows } = await bed.sql.query<{ calls: number }>(
    `SELECT calls::int AS calls FROM pg_stat_user_functions WHERE funcname = 'claim_work'`,
  );
  expect(rows[0]?.calls).toBeGreaterThan(3);
  expect(rows[0]?.calls).toBeLessThan(40);
});
