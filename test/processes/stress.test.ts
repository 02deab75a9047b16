import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep } from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { Workers } from './support/worker.js';

let bed: Bed;
let workers: Workers;
beforeAll(async () => {
  bed = await createBed();
  workers = await Workers.prepare();
});
afterAll(async () => {
  await workers.close();
  await bed.close();
});

const KILL_INTERVAL_MS = 200;
const KILLING_MS = 10_000;
const STEPS = 40;

test('C54 every connection is killed again and again: all workflows finish, the process lives, no connection leaks', async () => {
  const maxConnections = 4;
  const worker = await workers.launch({
    database: bed.database.url,
    executorId: 'bombarded',
    maxConnections,
    pollInterval: 50,
    lease: 5_000,
  });
  const workflowIds = Array.from({ length: 30 }, (_, index) => `bombarded ${String(index)}.`);
  const handles = workflowIds.map(async (workflowId) => {
    await worker.start('busy', workflowId, STEPS);
    return worker.result(workflowId);
  });
  const all = Promise.allSettled(handles);
  const killed = await killConnections(KILLING_MS);
  expect(killed).toBeGreaterThan(maxConnections);
  const outcomes = await all;
  const sum = (STEPS * (STEPS - 1)) / 2;
  expect(outcomes).toEqual(workflowIds.map(() => ({ status: 'fulfilled', value: sum })));
  expect(worker.isAlive).toBe(true);
  // A body whose checkpoint met a killed connection is not run again: the write is sent again.
  for (const workflowId of workflowIds) expect(workers.runsOf(workflowId)).toHaveLength(STEPS);
  const { rows } = await bed.sql.query(
    `SELECT count(*)::int4 AS workflows, sum(epoch)::int4 AS epochs, sum(attempts)::int4 AS attempts,
            (SELECT count(*)::int4 FROM holdfast.step_result) AS steps,
            (SELECT count(*)::int4 FROM holdfast.workflow_outcome) AS outcomes
       FROM holdfast.workflow_status`,
  );
  expect(rows).toEqual([{ workflows: 30, epochs: 30, attempts: 30, steps: 30 * STEPS, outcomes: 30 }]);
  await waitUntil(async () => (await worker.health()).state === 'running', 'the executor is well');
  // Its pool, and the one that listens.
  expect(await connections()).toBeLessThanOrEqual(maxConnections + 1);
  await worker.closeHoldfast();
  await waitUntil(async () => (await connections()) === 0, 'all connections are gone');
});

async function connections(): Promise<number> {
  const { rowCount } = await bed.sql.query(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast'`,
  );
  return rowCount ?? 0;
}

async function killConnections(durationMs: number): Promise<number> {
  const until = performance.now() + durationMs;
  let killed = 0;
  while (performance.now() < until) {
    const { rowCount } = await bed.sql.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'holdfast'`,
    );
    killed += rowCount ?? 0;
    await new Promise((resolve) => setTimeout(resolve, KILL_INTERVAL_MS));
  }
  return killed;
}

test('C55 the pool is shared with code that takes all its connections: neither a deadlock nor a failed workflow', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url, max: 2, connectionTimeoutMillis: 1_000 });
  pool.on('error', () => undefined);
  const problems: string[] = [];
  const run = defineWorkflow('greedy', async (index: number) => {
    for (let turn = 0; turn < 3; turn++) {
      // A transaction of the user's own, inside a step. Two of them at once use up the pool.
      await runStep(`turn ${String(turn)}`, async () => {
        const client = await connectPatiently(pool);
        try {
          await client.query('BEGIN');
          await client.query('SELECT pg_sleep(0.05)');
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      });
    }
    return index;
  });
  const holdfast = await bed.launch({
    workflows: [run],
    database: pool,
    lease: 1_000,
    logger: { ...silentLogger, error: (message) => void problems.push(message) },
  });
  const starts = Array.from({ length: 10 }, async (_, index) => (await holdfast.start(run, {}, index)).result());
  const all = Promise.allSettled(starts);
  // Somebody holds both connections for longer than the lease, and than the pool's patience.
  const held = [await connectPatiently(pool), await connectPatiently(pool)];
  await waitUntil(() => holdfast.health().state === 'fenced', 'heartbeats get no connection');
  for (const client of held) client.release();
  expect(await all).toEqual(Array.from({ length: 10 }, (_, value) => ({ status: 'fulfilled', value })));
  await waitUntil(() => holdfast.health().state === 'running', 'the executor is well');
  expect(problems).toEqual([]);
  const { rows } = await bed.sql.query(
    `SELECT DISTINCT status, epoch::int4, attempts FROM holdfast.workflow_status WHERE name = 'greedy'`,
  );
  expect(rows).toEqual([{ status: 'SUCCESS', epoch: 1, attempts: 1 }]);
  await holdfast.close();
  await pool.end();
});

async function connectPatiently(pool: pg.Pool): Promise<pg.PoolClient> {
  for (;;) {
    try {
      return await pool.connect();
    } catch {
      // The pool's time limit: in the queue again.
    }
  }
}
