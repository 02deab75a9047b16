import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  continueAsNew,
  defineWorkflow,
  getEvent,
  HoldfastClient,
  receive,
  setEvent,
  type Holdfast,
} from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const collect = defineWorkflow('collect', async (count: number) => {
  const got: unknown[] = [];
  while (got.length < count) got.push(await receive('t'));
  return got;
});

async function epochOf(workflowId: string): Promise<number> {
  const { rows } = await bed.sql.query<{ epoch: number }>(
    `SELECT epoch::int FROM holdfast.workflow_status WHERE workflow_id = $1 AND status = 'PENDING'`,
    [workflowId],
  );
  return rows[0]?.epoch ?? 0;
}

test('C42 two executors run one workflow and wait for one message: it is received once, both get the same outcome', async () => {
  // It is told of nothing and looks for nothing: only its own writes tell it that it has been replaced.
  const zombie = await bed.launch({ workflows: [collect], notifications: false, pollInterval: '1h', lease: '1h' });
  const stale = await zombie.start(collect, { workflowId: 'both' }, 2);
  const owner = await bed.launch({ workflows: [collect] });
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1
      WHERE workflow_id = 'both'`,
  );
  await waitUntil(async () => (await epochOf('both')) === 2, 'the owner runs it');
  expect(zombie.health().running).toBe(1);
  // Sent by the zombie's process, which so hears of it first.
  await zombie.send('both', 't', 'one');
  await waitUntil(() => zombie.health().running === 0, 'the zombie has parked');
  await zombie.send('both', 't', 'two');
  const outcomes = await Promise.all([stale.result(), owner.handle('both').result()]);
  expect(outcomes).toEqual([
    ['one', 'two'],
    ['one', 'two'],
  ]);
  const { rows } = await bed.sql.query(
    `SELECT seq, output, epoch::int FROM holdfast.step_result WHERE workflow_id = 'both' ORDER BY seq`,
  );
  expect(rows).toEqual([
    { seq: 0, output: '"one"', epoch: 2 },
    { seq: 1, output: '"two"', epoch: 2 },
  ]);
  await zombie.close();
  await owner.close();
});

async function exchange(here: Holdfast, there: Holdfast, workflowId: string): Promise<void> {
  const handle = await here.start(collect, { workflowId }, 2);
  await there.send(workflowId, 't', 1);
  await there.send(workflowId, 't', 2);
  expect(await handle.result()).toEqual([1, 2]);
}

test('C44 messages arrive while the listening connection is dead, half-open too, and after it was replaced', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const here = await bed.launch({
    workflows: [collect],
    listenDatabase: proxy.connectionString(bed.database.url),
    pollInterval: 20,
  });
  const there = await bed.launch({ workflows: [] });
  await waitUntil(() => proxy.counters.open === 1, 'it listens');
  await exchange(here, there, 'listening');

  const kill = async (): Promise<void> => {
    await bed.sql.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query ILIKE 'LISTEN%' AND pid <> pg_backend_pid()`,
    );
    await waitUntil(() => proxy.counters.open === 0, 'the listening connection is dead');
  };
  await proxy.admit('refused');
  await kill();
  await exchange(here, there, 'deaf');

  await proxy.admit('open');
  await waitUntil(() => proxy.counters.open === 1, 'it listens again');
  await exchange(here, there, 'again');

  // From here on it connects, and nobody ever answers.
  await proxy.admit('silent');
  await kill();
  await exchange(here, there, 'silent');
  await here.close();
  await there.close();
  await proxy.close();
});

test('C44 a process that was deaf looks for everything once it listens again: work and schedules need no poll', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const tick = defineWorkflow('tick', () => Promise.resolve('done'));
  const here = await bed.launch({
    workflows: [tick],
    listenDatabase: proxy.connectionString(bed.database.url),
    pollInterval: '1h',
  });
  const client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
  const deafen = async (): Promise<void> => {
    await waitUntil(() => proxy.counters.open === 1, 'it listens');
    await proxy.admit('refused');
    proxy.cutAll();
    await waitUntil(() => proxy.counters.open === 0, 'it is deaf');
  };
  await deafen();
  // A look that it began when it still listened may come late, and take the first.
  let handle = await client.start(tick, {});
  await waitUntil(async () => {
    if ((await handle.status()) === 'ENQUEUED') return true;
    handle = await client.start(tick, {});
    return false;
  }, 'it does not look any more');
  await proxy.admit('open');
  expect(await handle.result()).toBe('done');
  await deafen();
  await client.schedules.define({ name: 'each second', cron: '* * * * * *', workflow: 'tick' });
  await proxy.admit('open');
  await waitUntil(
    async () => (await client.admin.list({ idPrefix: 'each second/', status: ['SUCCESS'] })).items.length > 0,
    'the schedule has fired and its run has ended',
  );
  await client.schedules.delete('each second');
  await client.close();
  await here.close();
  await proxy.close();
});

test('C45 more news at once than a notification can name, of long and odd IDs, is told as news of any workflow', async () => {
  const ids = Array.from({ length: 200 }, (_, n) => `"it's": 🙂 ${'long '.repeat(30)}${String(n)}`);
  const here = await bed.launch({ workflows: [collect], maxConcurrent: 400 });
  const client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
  const handles = await Promise.all(ids.map((workflowId) => here.start(collect, { workflowId }, 1)));
  const payloads: (string | undefined)[] = [];
  bed.sql.on('notification', ({ payload }) => payloads.push(payload));
  await bed.sql.query('LISTEN "holdfast.message"');
  await Promise.all(ids.map((workflowId) => client.send(workflowId, 't', workflowId)));
  expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual(ids.map((id) => [id]));
  await bed.sql.query('UNLISTEN *');
  // A word that is no list of IDs.
  expect(payloads.some((payload) => payload !== undefined && !payload.startsWith('['))).toBe(true);
  await client.close();
  await here.close();
});

test('C43 a message whose notification was lost is found by the poll', async () => {
  const here = await bed.launch({ workflows: [collect], pollInterval: 20 });
  const handle = await here.start(collect, { workflowId: 'untold' }, 1);
  // The function for batches notifies nobody; whoever calls it does that.
  await bed.sql.query(`SELECT * FROM holdfast.send_batch(ARRAY['untold'], ARRAY['id'], ARRAY['t'], ARRAY['"found"'])`);
  expect(await handle.result()).toEqual(['found']);
  await here.close();
});

test('a suspended workflow is woken by its message, by the event it waits for, and by the end of its wait', async () => {
  const asks = defineWorkflow('asks', async (workflowId: string) => {
    const state = await getEvent(workflowId, 'state');
    const late = await receive('never', { timeout: 300 });
    return [state, late, await receive('t', { timeout: '1h' })];
  });
  const tells = defineWorkflow('tells', async () => {
    await setEvent('state', await receive('t'));
  });
  const here = await bed.launch({ workflows: [asks, tells], suspendAfter: 20, pollInterval: 20 });
  const suspended = async (workflowId: string): Promise<void> => {
    await waitUntil(async () => {
      const { rows } = await bed.sql.query(
        `SELECT FROM holdfast.workflow_status WHERE workflow_id = $1 AND status = 'SUSPENDED'`,
        [workflowId],
      );
      return rows.length === 1;
    }, `${workflowId} is suspended`);
  };
  const asking = await here.start(asks, { workflowId: 'asking' }, 'telling');
  await expect(asking.result()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  await here.start(tells, { workflowId: 'telling' });
  const again = await here.start(asks, { workflowId: 'asking again' }, 'telling');
  await suspended('telling');
  await suspended('asking again');
  await here.send('telling', 't', 'told');
  await waitUntil(async () => {
    const { rows } = await bed.sql.query(
      `SELECT FROM holdfast.step_result WHERE workflow_id = 'asking again' AND seq = 1`,
    );
    return rows.length === 1;
  }, 'the wait for what never comes is over');
  await suspended('asking again');
  await bed.sql.query(`SELECT holdfast.send_message('asking again', 't', '"message"')`);
  expect(await again.result()).toEqual(['told', undefined, 'message']);
  await here.close();
});

test('messages and events belong to the workflow and not to its run: continue-as-new keeps them', async () => {
  const runs = defineWorkflow('runs', async (round: number): Promise<unknown[]> => {
    const got = await receive('t');
    await setEvent('round', [round, got]);
    return round < 2 ? continueAsNew(runs, round + 1) : [round, got];
  });
  const here = await bed.launch({ workflows: [runs], pollInterval: 20 });
  const handle = await here.start(runs, { workflowId: 'runs' }, 1);
  await handle.send('t', 'a');
  await handle.send('t', 'b');
  expect(await handle.result()).toEqual([2, 'b']);
  expect(await handle.getEvent('round')).toEqual([2, 'b']);
  const { rows } = await bed.sql.query<{ first: number }>(
    `SELECT min(seq) AS first FROM holdfast.step_result WHERE workflow_id = 'runs'`,
  );
  // What the first run received and set is out of reach.
  await here.admin.rewind('runs', { toStep: rows[0]?.first ?? -1 });
  expect(await handle.result()).toEqual([2, 'b']);
  expect(await handle.getEvent('round')).toEqual([2, 'b']);
  await here.close();
});

test('C36 messages survive cancel and resume', async () => {
  const here = await bed.launch({ workflows: [collect], pollInterval: 20 });
  const handle = await here.start(collect, { workflowId: 'resumed' }, 2);
  await handle.send('t', 1);
  await here.admin.cancel('resumed');
  await expect(handle.send('t', 2)).rejects.toMatchObject({ code: 'RECEIVER_ENDED', status: 'CANCELLED' });
  await here.admin.resume('resumed');
  await handle.send('t', 2);
  expect(await here.handle('resumed').result()).toEqual([1, 2]);
  await here.close();
});

test('a workflow that was given back at shutdown goes on elsewhere with its messages', async () => {
  const first = await bed.launch({ workflows: [collect] });
  const handle = await first.start(collect, { workflowId: 'moves' }, 3);
  await handle.send('t', 1);
  await waitUntil(async () => {
    const { rows } = await bed.sql.query(
      `SELECT FROM holdfast.message WHERE workflow_id = 'moves' AND consumed_seq = 0`,
    );
    return rows.length === 1;
  }, 'it has the first');
  await first.close();
  const second = await bed.launch({ workflows: [collect] });
  await second.send('moves', 't', 2);
  await second.send('moves', 't', 3);
  expect(await second.handle('moves').result()).toEqual([1, 2, 3]);
  await second.close();
});
