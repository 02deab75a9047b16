import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, receive, type Holdfast } from '../../src/index.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
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

  await proxy.admit('refused');
  await bed.sql.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%' AND pid <> pg_backend_pid()`,
  );
  await waitUntil(() => proxy.counters.open === 0, 'the listening connection is dead');
  await exchange(here, there, 'deaf');

  await proxy.admit('silent');
  await exchange(here, there, 'silent');

  await proxy.admit('open');
  await waitUntil(() => proxy.counters.open === 1, 'it listens again');
  await exchange(here, there, 'again');
  await here.close();
  await there.close();
  await proxy.close();
});

test('C43 a message whose notification was lost is found by the poll', async () => {
  const here = await bed.launch({ workflows: [collect], pollInterval: 20 });
  const handle = await here.start(collect, { workflowId: 'untold' }, 1);
  // The function for batches notifies nobody; whoever calls it does that.
  await bed.sql.query(`SELECT * FROM holdfast.send_batch(ARRAY['untold'], ARRAY['id'], ARRAY['t'], ARRAY['"found"'])`);
  expect(await handle.result()).toEqual(['found']);
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
