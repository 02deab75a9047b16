import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, receive, runStep } from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const item = defineWorkflow('item', (n: number) => Promise.resolve(n));
/** Rewrites its row with every call. */
const busy = defineWorkflow('busy', async () => {
  let sum = 0;
  for (let n = 0; n < 400; n++) sum += await runStep('step', () => Promise.resolve(n));
  for (let n = 0; n < 100; n++) sum += await receive<number>('t');
  return sum;
});

test('C61 while nothing that is dead can be cleaned away, queues, steps and messages go on', async () => {
  const holdfast = await bed.launch({
    workflows: [item, busy],
    queues: [{ name: 'q', concurrency: 20, keyConcurrency: 2 }],
  });
  // The oldest snapshot of all: no dead row or index entry after it can be removed, by a vacuum or a page prune.
  const elder = new pg.Client({ connectionString: bed.database.url });
  await elder.connect();
  await elder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await elder.query('SELECT count(*) FROM holdfast.workflow_status');

  const writing = await holdfast.start(busy, { workflowId: 'busy' });
  for (let round = 0; round < 3; round++) {
    const results = await holdfast.enqueueMany(
      item,
      { queue: 'q' },
      Array.from({ length: 500 }, (_, n) => ({ args: [n], key: `k${String(n % 25)}` })),
    );
    const values = results.map((result) => (result.ok ? result.handle.result() : Promise.reject(result.error)));
    expect(await Promise.all(values)).toEqual(results.map((_, n) => n));
    // Each vacuum finds that it may not.
    await bed.sql.query('VACUUM holdfast.workflow_status');
  }
  for (let n = 0; n < 100; n++) await writing.send('t', 1);
  expect(await writing.result()).toBe((400 * 399) / 2 + 100);

  const { rows } = await bed.sql.query<{ dead: number }>(
    `SELECT n_dead_tup::int AS dead FROM pg_stat_user_tables WHERE schemaname = 'holdfast' AND relname = 'workflow_status'`,
  );
  expect(rows[0]?.dead).toBeGreaterThan(2_000);
  await elder.query('COMMIT');
  await elder.end();
  await holdfast.close();
});
