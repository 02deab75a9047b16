import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, Holdfast } from '../../src/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { silentLogger, waitUntil } from '../support/launch.js';
import { Workers } from './support/worker.js';

let database: TestDatabase;
let sql: pg.Client;
let workers: Workers;
let probes = 0;
beforeAll(async () => {
  [database, workers] = await Promise.all([createTestDatabase(), Workers.prepare()]);
  sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
});
afterEach(() => workers.killAll());
afterAll(async () => {
  await workers.close();
  await sql.end();
  await database.drop();
});

const OPTIONS = { lease: 60_000, pollInterval: 50, shutdownOn: ['SIGTERM', 'SIGINT'] } as const;

async function rowOf(workflowId: string): Promise<unknown> {
  const { rows } = await sql.query(
    'SELECT status, attempts, epoch::int4 AS epoch FROM holdfast.workflow_status WHERE workflow_id = $1',
    [workflowId],
  );
  return rows[0];
}

/** Whether the executor has begun to close: then it starts nothing any more. */
async function refusesStarts(worker: Awaited<ReturnType<Workers['launch']>>): Promise<boolean> {
  try {
    await worker.start('child', `probe ${String(++probes)}`);
    return false;
  } catch (error) {
    return (error as { code?: string }).code === 'CLOSED';
  }
}

test('C12 at SIGTERM a process lets its workflows finish, leaves the fleet, and ends by the signal', async () => {
  const worker = await workers.launch({
    ...OPTIONS,
    database: database.url,
    executorId: 'leaving',
    shutdownTimeout: 60_000,
  });
  const held = worker.hold('second');
  await worker.start('two steps', 'drained');
  await held.arrived;
  worker.signal('SIGTERM');
  await waitUntil(() => refusesStarts(worker), 'it starts nothing any more');
  expect(await rowOf('drained')).toMatchObject({ status: 'PENDING' });
  held.release();
  expect(await worker.ended()).toBe('SIGTERM');
  expect(await rowOf('drained')).toEqual({ status: 'SUCCESS', attempts: 1, epoch: 1 });
  const { rows } = await sql.query(
    `SELECT lease_until <= clock_timestamp() AS left FROM holdfast.executor WHERE executor_id = 'leaving'`,
  );
  expect(rows).toEqual([{ left: true }]);
});

test('C12 what does not finish in time is given back, and another process goes on at once; it is not an attempt', async () => {
  const worker = await workers.launch({ ...OPTIONS, database: database.url, shutdownTimeout: 0 });
  const held = worker.hold('second');
  await worker.start('two steps', 'given back');
  await held.arrived;
  worker.signal('SIGINT');
  expect(await worker.ended()).toBe('SIGINT');
  expect(await rowOf('given back')).toEqual({ status: 'ENQUEUED', attempts: 0, epoch: 1 });
  const other = await workers.launch({ ...OPTIONS, database: database.url });
  expect(await other.result('given back')).toEqual([
    expect.stringContaining('first'),
    expect.stringContaining('second'),
  ]);
  expect(workers.runsOf('given back').map(({ name }) => name)).toEqual(['first', 'second', 'second']);
});

test('a second signal ends the process at once; what it owned is recovered like that of a dead one', async () => {
  const worker = await workers.launch({
    ...OPTIONS,
    database: database.url,
    executorId: 'impatient',
    shutdownTimeout: 60_000,
  });
  const held = worker.hold('second');
  await worker.start('two steps', 'forced');
  await held.arrived;
  worker.signal('SIGTERM');
  await waitUntil(() => refusesStarts(worker), 'it starts nothing any more');
  worker.signal('SIGTERM');
  expect(await worker.ended()).toBe('SIGTERM');
  expect(await rowOf('forced')).toMatchObject({ status: 'PENDING', epoch: 1 });
  const other = await workers.launch({ ...OPTIONS, database: database.url, executorId: 'impatient' });
  expect(await other.result('forced')).toHaveLength(2);
});

test('close takes the handlers away; without the option there are none', async () => {
  const launch = (signals: readonly 'SIGHUP'[]) =>
    Holdfast.launch({
      database: database.url,
      workflows: [defineWorkflow('idle', () => Promise.resolve())],
      logger: silentLogger,
      ...(signals.length > 0 && { shutdownOn: signals }),
    });
  const before = process.listenerCount('SIGHUP');
  const holdfast = await launch(['SIGHUP']);
  expect(process.listenerCount('SIGHUP')).toBe(before + 1);
  await holdfast.close();
  await (await launch([])).close();
  expect(process.listenerCount('SIGHUP')).toBe(before);
});
