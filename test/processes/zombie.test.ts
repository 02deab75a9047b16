import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import type { WorkflowName } from './support/messages.js';
import { snapshot } from './support/record.js';
import { Workers, type Worker } from './support/worker.js';

// A process stands still for longer than its lease (SIGSTOP), another one takes its workflow over and finishes it, and the
// first one goes on as if nothing had happened: it has to find out by itself.

let bed: Bed;
let workers: Workers;
let proxy: PgProxy;
beforeAll(async () => {
  bed = await createBed();
  workers = await Workers.prepare();
  proxy = await startPgProxyFor(bed.database.url);
});
afterEach(() => workers.killAll());
afterAll(async () => {
  await workers.close();
  await proxy.close();
  await bed.close();
});

/** Milliseconds. Real, since the zombie's own view of it counts here. */
const LEASE = 400;
/** Milliseconds within which a parked handle has to return. */
const PARKED_LIMIT = 2_000;

async function launchZombie(workflowId: string): Promise<Worker> {
  return workers.launch({
    database: proxy.connectionString(bed.database.url),
    executorId: `zombie ${workflowId}`,
    lease: LEASE,
    // It would otherwise recover what the new owner runs, should that be slow.
    pollInterval: 3_600_000,
  });
}

/** Freezes the zombie until another process has finished the workflow. */
async function takeOver(zombie: Worker, workflowId: string): Promise<unknown> {
  zombie.freeze();
  const owner = await workers.launch({ database: bed.database.url, pollInterval: 20 });
  return owner.result(workflowId);
}

/** Goes on in the zombie and expects it to have changed nothing. */
async function expectHarmless(zombie: Worker, workflowId: string, outcome: unknown, goOn: () => void): Promise<void> {
  const before = await snapshot(bed.sql, workflowId);
  const runsBefore = workers.runsOf(workflowId).length;
  goOn();
  zombie.thaw();
  const begun = performance.now();
  expect(await zombie.result(workflowId)).toEqual(outcome);
  expect(performance.now() - begun).toBeLessThan(PARKED_LIMIT);
  await waitUntil(async () => (await zombie.health()).running === 0, 'the zombie has parked');
  // It renews its lease and goes on with other work.
  await waitUntil(async () => (await zombie.health()).state === 'running', 'the zombie is well again');
  await zombie.start('child', `${workflowId}, later`);
  expect(await zombie.result(`${workflowId}, later`)).toContain('child step');
  expect(
    workers
      .runsOf(workflowId)
      .slice(runsBefore)
      .map(({ name }) => name),
  ).toEqual(['child step']);
  const after = await snapshot(bed.sql, workflowId);
  for (const [table, rows] of Object.entries(before)) {
    expect(after[table as keyof typeof after]).toEqual(expect.arrayContaining([...rows]));
  }
  expect(after.step_result).toHaveLength(before.step_result.length + 1);
}

test.each([
  ['', 'two steps', ['first #2', 'second #4']],
  ['although its code swallows every error', 'swallowing', ['first #2', 'second #3', 'third #4']],
] as const)('frozen in a step body: its result is not written, no further body starts %s', async (_, name, results) => {
  const workflowId = `body ${name}`;
  const ticket = workers.runs.length;
  const zombie = await launchZombie(workflowId);
  const body = zombie.hold('first');
  await zombie.start(name satisfies WorkflowName, workflowId);
  await body.arrived;
  const outcome = await takeOver(zombie, workflowId);
  expect(outcome).toEqual(results.map((result) => result.replace(/\d+/, (n) => String(Number(n) + ticket))));
  await expectHarmless(zombie, workflowId, outcome, () => {
    body.release();
  });
});

test('C18 frozen between two steps: the next body is not started before ownership has been verified', async () => {
  const workflowId = 'between';
  const zombie = await launchZombie(workflowId);
  const pause = zombie.hold('between');
  await zombie.start('two steps', workflowId);
  await pause.arrived;
  const outcome = await takeOver(zombie, workflowId);
  await expectHarmless(zombie, workflowId, outcome, () => {
    pause.release();
  });
});

test('C18 a renewed heartbeat alone does not let a body start: what was lost in the gap has to be known first', async () => {
  const workflowId = 'renewed';
  const zombie = await launchZombie(workflowId);
  const pause = zombie.hold('between');
  await zombie.start('two steps', workflowId);
  await pause.arrived;
  const outcome = await takeOver(zombie, workflowId);
  // The heartbeat gets through; the question what this executor still owns does not.
  const question = proxy.arm({ do: 'black-hole' }, /owned_workflows/);
  zombie.thaw();
  await question.happened;
  expect((await zombie.health()).state).toBe('fenced');
  pause.release();
  // By now the code has called its next step, and parked.
  expect(await zombie.result(workflowId)).toEqual(outcome);
  await waitUntil(async () => (await zombie.health()).running === 0, 'the zombie has parked');
  expect(workers.runsOf(workflowId).map(({ name, epoch }) => [name, epoch])).toEqual([
    ['first', 1],
    ['second', 2],
  ]);
  proxy.cutAll();
  await waitUntil(async () => (await zombie.health()).state === 'running', 'the zombie is well again');
});

test('frozen in a checkpoint that the server has not seen: when it arrives it changes nothing', async () => {
  const workflowId = 'checkpoint before';
  const zombie = await launchZombie(workflowId);
  const write = proxy.arm({ do: 'black-hole' }, /checkpoint_one/);
  await zombie.start('two steps', workflowId);
  await write.happened;
  const outcome = await takeOver(zombie, workflowId);
  // The zombie finds its connection broken, and sends the same write again.
  const again = proxy.arm({ do: 'delay', delayMs: 0 }, /checkpoint_one/);
  await expectHarmless(zombie, workflowId, outcome, () => {
    proxy.cutAll({ reset: true });
  });
  expect(again.hits).toBe(1);
});

test('frozen in a checkpoint that is committed: its result counts, and the next body belongs to the new owner', async () => {
  const workflowId = 'checkpoint after';
  const zombie = await launchZombie(workflowId);
  const write = proxy.arm({ do: 'black-hole', afterForwarding: true }, /checkpoint_one/);
  await zombie.start('two steps', workflowId);
  await write.happened;
  await waitUntil(
    async () => (await snapshot(bed.sql, workflowId)).step_result.length === 1,
    'the checkpoint is committed',
  );
  const outcome = await takeOver(zombie, workflowId);
  expect(workers.runsOf(workflowId).map(({ name, epoch }) => [name, epoch])).toEqual([
    ['first', 1],
    ['second', 2],
  ]);
  await expectHarmless(zombie, workflowId, outcome, () => {
    proxy.cutAll({ reset: true });
  });
});

test('frozen in its completion: it returns the outcome of the new owner, not the one that it had computed', async () => {
  const workflowId = 'completion';
  const zombie = await launchZombie(workflowId);
  const write = proxy.arm({ do: 'black-hole' }, /complete_batch/);
  await zombie.start('two steps', workflowId);
  await write.happened;
  const outcome = await takeOver(zombie, workflowId);
  expect(workers.runsOf(workflowId).map(({ name }) => name)).toEqual(['first', 'second']);
  await expectHarmless(zombie, workflowId, outcome, () => {
    proxy.cutAll({ reset: true });
  });
});
