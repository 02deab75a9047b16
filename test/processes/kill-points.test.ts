import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { armAt, BODIES, expectOneOrder, isThere, POINTS } from './support/order.js';
import { snapshot } from './support/record.js';
import { Workers } from './support/worker.js';

// A process is killed at every point of a workflow's life, and another one recovers it. The proxy between the first process
// and the server holds the statement, or its reply, so that the process dies at exactly that point.

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

/** Which step's body has run when its write is lost, and has to run again. */
const BODY_BEFORE: Readonly<Record<string, string>> = {
  'the checkpoint of the first step': 'first',
  "the checkpoint of the child's step": 'child step',
  'the checkpoint of the second step': 'second',
};

/** A second process takes over what the killed one left, and everything adds up. */
async function expectRecovery(workflowId: string, interrupted: string | undefined): Promise<void> {
  await bed.expireLease(`killed ${workflowId}`);
  const survivor = await workers.launch({
    database: bed.database.url,
    executorId: `survivor ${workflowId}`,
    pollInterval: 20,
  });
  // What a client does that got no answer. It attaches to what is there, or starts what is not.
  await survivor.start('order', workflowId);
  const outcome = await survivor.result(workflowId);
  await expectOneOrder(bed.sql, workers, workflowId, outcome, interrupted);
}

test.each(POINTS.map(([point], index) => [point, index] as const))(
  'killed before the server got %s: one outcome, recorded steps are not run again, the interrupted one is',
  async (point, index) => {
    const workflowId = `before ${String(index)}`;
    const victim = await workers.launch({
      database: proxy.connectionString(bed.database.url),
      executorId: `killed ${workflowId}`,
    });
    const held = armAt(proxy, index, { do: 'black-hole' });
    void victim.start('order', workflowId).catch(() => undefined);
    await held.happened;
    await victim.kill();
    expect(await isThere(bed.sql, POINTS[index]?.[1] ?? '', workflowId)).toBe(false);
    await expectRecovery(workflowId, BODY_BEFORE[point]);
  },
);

test.each(POINTS.map(([point, proof], index) => [point, index, proof] as const))(
  'killed after the commit of %s and before its reply: one outcome, and no body is run twice',
  async (_, index, proof) => {
    const workflowId = `after ${String(index)}`;
    const victim = await workers.launch({
      database: proxy.connectionString(bed.database.url),
      executorId: `killed ${workflowId}`,
    });
    const held = armAt(proxy, index, { do: 'black-hole', afterForwarding: true });
    void victim.start('order', workflowId).catch(() => undefined);
    await held.happened;
    await waitUntil(() => isThere(bed.sql, proof, workflowId), 'the write is committed');
    await victim.kill();
    await expectRecovery(workflowId, undefined);
  },
);

test.each(BODIES)('killed in the body of "%s": it is run again, and nothing else is', async (name) => {
  const workflowId = `in ${name}`;
  const victim = await workers.launch({ database: bed.database.url, executorId: `killed ${workflowId}` });
  const body = victim.hold(name);
  void victim.start('order', workflowId).catch(() => undefined);
  await body.arrived;
  await victim.kill();
  await expectRecovery(workflowId, name);
});

test('killed again and again in the same body: a run for each attempt, one outcome', async () => {
  const workflowId = 'again';
  for (let attempt = 1; attempt <= 3; attempt++) {
    // The same configured ID: what the one before left is taken at once, whatever its lease says.
    const victim = await workers.launch({ database: bed.database.url, executorId: 'again', lease: 60_000 });
    const body = victim.hold('second');
    if (attempt === 1) await victim.start('two steps', workflowId);
    expect((await body.arrived).epoch).toBe(attempt);
    await victim.kill();
  }
  const survivor = await workers.launch({ database: bed.database.url, executorId: 'again' });
  expect(await survivor.result(workflowId)).toHaveLength(2);
  expect(workers.runsOf(workflowId).map(({ name }) => name)).toEqual(['first', ...Array<string>(4).fill('second')]);
  const { workflow_ownership: owners } = await snapshot(bed.sql, workflowId);
  expect(owners.map(({ epoch }) => Number(epoch)).sort()).toEqual([1, 2, 3, 4]);
});
