import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { armAt, expectOneOrder, POINTS, WRITE } from './support/order.js';
import { snapshot } from './support/record.js';
import { Workers, type Worker } from './support/worker.js';

// C9: the server commits and its reply is lost. The process finds out what really happened, and goes on.

let bed: Bed;
let workers: Workers;
let proxy: PgProxy;
let worker: Worker;
beforeAll(async () => {
  bed = await createBed();
  workers = await Workers.prepare();
  proxy = await startPgProxyFor(bed.database.url);
  worker = await workers.launch({ database: proxy.connectionString(bed.database.url), pollInterval: 20 });
});
afterEach(async () => {
  expect(worker.isAlive).toBe(true);
  // A handle may learn the outcome from the record before the completion has been answered: that may be sent once more.
  await waitUntil(async () => (await worker.health()).running === 0, 'nothing runs any more');
});
afterAll(async () => {
  await workers.close();
  await proxy.close();
  await bed.close();
});

async function run(workflowId: string): Promise<unknown> {
  await worker.start('order', workflowId);
  return worker.result(workflowId);
}

/** One execution, here and without interruption, did it all. */
async function expectUndisturbed(workflowId: string, outcome: unknown): Promise<void> {
  await expectOneOrder(bed.sql, workers, workflowId, outcome);
  const { workflow_status: rows, workflow_ownership: owners } = await snapshot(bed.sql, workflowId);
  expect(rows.map(({ epoch, attempts }) => [epoch, attempts])).toEqual([
    ['1', 1],
    ['1', 1],
  ]);
  expect(owners).toHaveLength(2);
}

test.each(POINTS.map(([point], index) => [point, index] as const))(
  'C9 the reply to %s is lost with a reset: it counts, and no body is run again',
  async (_, index) => {
    const workflowId = `reset ${String(index)}`;
    const fault = armAt(proxy, index, { do: 'drop-reply', reset: true });
    const outcome = await run(workflowId);
    expect(fault.hits).toBe(1);
    await expectUndisturbed(workflowId, outcome);
  },
);

test.each(POINTS.map(([point], index) => [point, index] as const))(
  'C9 the connection is closed before the server gets %s: it is sent again, and no body is run again',
  async (_, index) => {
    const workflowId = `before ${String(index)}`;
    const fault = armAt(proxy, index, { do: 'cut-before' });
    const outcome = await run(workflowId);
    expect(fault.hits).toBe(1);
    await expectUndisturbed(workflowId, outcome);
  },
);

test('C9 replies are lost again and again, one of every two: each write counts once', async () => {
  // The second try of a write is let through, or nothing would ever end.
  let seen = 0;
  const fault = proxy.arm({ do: 'drop-reply' }, ({ sql }) => WRITE.test(sql) && seen++ % 2 === 0, { times: 100 });
  const outcome = await run('every');
  fault.disarm();
  // On a busy machine a write may be sent a third time for a reason of its own; then the next one is let through at once.
  expect(fault.hits).toBeGreaterThan(POINTS.length / 2);
  await expectUndisturbed('every', outcome);
});

test('C9 replies that come late, in pieces, lead to no second try', async () => {
  proxy.fragment(7);
  const fault = proxy.arm({ do: 'delay', delayMs: 60 }, WRITE, { times: 100 });
  const outcome = await run('slow');
  proxy.fragment(undefined);
  fault.disarm();
  expect(fault.hits).toBe(POINTS.length);
  await expectUndisturbed('slow', outcome);
});

test('C9 a start and its workflow’s writes are lost together with those of others: each gets its own answer', async () => {
  let seen = 0;
  const fault = proxy.arm({ do: 'drop-reply' }, ({ sql }) => WRITE.test(sql) && seen++ % 3 === 0, {
    times: 100,
  });
  const workflowIds = Array.from({ length: 10 }, (_, index) => `many ${String(index)}.`);
  const outcomes = await Promise.all(workflowIds.map(run));
  fault.disarm();
  for (const [index, workflowId] of workflowIds.entries()) await expectUndisturbed(workflowId, outcomes[index]);
});

test('C9 the reply to the giving back at shutdown is lost: it counts once, and is no attempt', async () => {
  const workflowId = 'given back';
  const leaver = await workers.launch({
    database: proxy.connectionString(bed.database.url),
    appVersion: 'leaver',
    pollInterval: 20,
  });
  const body = leaver.hold('first');
  await leaver.start('two steps', workflowId);
  await body.arrived;
  const fault = proxy.arm({ do: 'drop-reply', reset: true }, /release_workflow/);
  await leaver.closeHoldfast();
  expect(fault.hits).toBe(1);
  const { workflow_status: rows, workflow_ownership: owners } = await snapshot(bed.sql, workflowId);
  expect(rows).toMatchObject([{ status: 'ENQUEUED', attempts: 0, epoch: '1', owner_token: null }]);
  expect(owners).toMatchObject([{ ended_how: 'released' }]);
});

test('C9 a connection that carries nothing any more, without a reset: given up after the time limit, and resolved', async () => {
  // Both lanes of the writer at once. Neither is cut: only the time limit of statements (30 s) ends the wait.
  const lost = armAt(proxy, 1, { do: 'black-hole', afterForwarding: true });
  const running = run('half-open 1.');
  await lost.happened;
  const unseen = armAt(proxy, 1, { do: 'black-hole' });
  const other = run('half-open 2.');
  await unseen.happened;
  await expectUndisturbed('half-open 1.', await running);
  await expectUndisturbed('half-open 2.', await other);
}, 90_000);
