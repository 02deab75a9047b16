import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep } from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { Workers, type Worker } from './support/worker.js';

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

test('processes are killed at random: each workflow has one outcome, and nothing recorded is ever run again', async () => {
  const ids = ['mortal 1', 'mortal 2', 'mortal 3'];
  const launch = (executorId: string): Promise<Worker> =>
    workers.launch({ database: bed.database.url, executorId, lease: 500, pollInterval: 30 });
  const alive = new Map<string, Worker>();
  for (const id of ids) alive.set(id, await launch(id));
  const size = 25;
  const workflowIds = Array.from({ length: 24 }, (_, index) => `mortal ${String(index)}.`);
  let acknowledged = 0;
  const starting = (async () => {
    for (const [index, workflowId] of workflowIds.entries()) {
      for (;;) {
        try {
          await alive.get(ids[index % ids.length] ?? '')?.start('long', workflowId, size);
          break;
        } catch {
          // It was killed: ask again, whoever is there by then.
          await new Promise(setImmediate);
        }
      }
      acknowledged += 1;
    }
  })();
  let kills = 0;
  while (kills < 12 || acknowledged < workflowIds.length) {
    // Some progress between two kills, or nothing would ever be interrupted but launches.
    const runs = workers.runs.length;
    await waitUntil(() => workers.runs.length >= runs + 20 || acknowledged === workflowIds.length, 'there is progress');
    const id = ids[Math.floor(Math.random() * ids.length)] ?? '';
    await alive.get(id)?.kill();
    kills += 1;
    alive.set(id, await launch(id));
  }
  await starting;
  const judge = alive.get('mortal 1');
  for (const workflowId of workflowIds) {
    const outcome = (await judge?.result(workflowId)) as string[];
    const runs = workers.runsOf(workflowId);
    const names = [...new Set(runs.map(({ name }) => name))];
    expect(outcome.map((result) => result.replace(/ #\d+$/, '')).sort()).toEqual(names.sort());
    // A killed process starts nothing later: the recorded run of a body is the last one there was.
    for (const name of names) {
      const last = Math.max(...runs.filter((run) => run.name === name).map(({ ticket }) => ticket));
      expect(outcome).toContain(`${name} #${String(last)}`);
    }
  }
  const { rows } = await bed.sql.query(
    `SELECT DISTINCT status, (SELECT count(*)::int4 FROM holdfast.workflow_outcome WHERE starts_with(workflow_id, 'mortal'))
              AS outcomes
       FROM holdfast.workflow_status WHERE starts_with(workflow_id, 'mortal')`,
  );
  expect(rows).toEqual([{ status: 'SUCCESS', outcomes: 2 * workflowIds.length }]);
  await workers.killAll();
}, 180_000);

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
