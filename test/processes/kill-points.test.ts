import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
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

const WRITE = /start_batch|checkpoint_one|checkpoint_batch|complete_batch|record_intent/;

/** The writes of workflow `order` and its child, in their order; and a statement that shows the record to be there. */
const POINTS = [
  ['the start', 'SELECT FROM holdfast.workflow_status WHERE workflow_id = $1'],
  ['the checkpoint of the first step', recorded('first')],
  ['the start of the child', 'SELECT FROM holdfast.workflow_status WHERE parent_id = $1'],
  ["the checkpoint of the child's step", recorded('child step')],
  ["the child's completion", outcomeOf(`(SELECT workflow_id FROM holdfast.workflow_status WHERE parent_id = $1)`)],
  ["the checkpoint of the child's outcome", recorded('child')],
  ['the intent to sleep', `SELECT FROM holdfast.step_intent WHERE workflow_id = $1 AND kind = 'sleep'`],
  ['the end of the sleep', recorded('sleep')],
  ['the checkpoint of the second step', recorded('second')],
  ['the completion', outcomeOf('($1)')],
] as const;

function recorded(name: string): string {
  return `SELECT FROM holdfast.step_result WHERE starts_with(workflow_id, $1) AND name = '${name}'`;
}

function outcomeOf(workflowIds: string): string {
  return `SELECT FROM holdfast.workflow_outcome WHERE workflow_id IN ${workflowIds}`;
}

/** Which step's body has run when its write is lost, and has to run again. */
const BODY_BEFORE: Readonly<Record<string, string>> = {
  'the checkpoint of the first step': 'first',
  "the checkpoint of the child's step": 'child step',
  'the checkpoint of the second step': 'second',
};

const BODIES = ['first', 'child step', 'second'];

async function isThere(statement: string, workflowId: string): Promise<boolean> {
  return (await bed.sql.query(statement, [workflowId])).rowCount !== 0;
}

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
  const outcome = (await survivor.result(workflowId)) as string[];
  const runs = workers.runsOf(workflowId);
  expect(runs.map(({ name }) => name).sort()).toEqual([...BODIES, ...(interrupted ? [interrupted] : [])].sort());
  // The last run of each body is the one whose result counts: an earlier one was never recorded.
  expect(outcome).toEqual(
    BODIES.map(
      (name) => `${name} #${String(Math.max(...runs.filter((run) => run.name === name).map((r) => r.ticket)))}`,
    ),
  );
  const record = await snapshot(bed.sql, workflowId);
  expect(record.workflow_status.map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS']);
  expect(record.workflow_outcome).toHaveLength(2);
  expect(record.workflow_input).toHaveLength(2);
  expect(record.step_result.map(({ name }) => name).sort()).toEqual([
    'child',
    'child step',
    'first',
    'second',
    'sleep',
  ]);
  expect(record.step_intent.map(({ kind }) => kind).sort()).toEqual(['sleep', 'workflow']);
  expect(record.workflow_ownership.filter(({ ended_at }) => ended_at === null)).toEqual([]);
}

test.each(POINTS.map(([point], index) => [point, index] as const))(
  'killed before the server got %s: one outcome, recorded steps are not run again, the interrupted one is',
  async (point, index) => {
    const workflowId = `before ${String(index)}`;
    const victim = await workers.launch({
      database: proxy.connectionString(bed.database.url),
      executorId: `killed ${workflowId}`,
    });
    let seen = 0;
    const held = proxy.arm({ do: 'black-hole' }, ({ sql }) => WRITE.test(sql) && seen++ === index);
    void victim.start('order', workflowId).catch(() => undefined);
    await held.happened;
    await victim.kill();
    expect(await isThere(POINTS[index]?.[1] ?? '', workflowId)).toBe(false);
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
    let seen = 0;
    const held = proxy.arm(
      { do: 'black-hole', afterForwarding: true },
      ({ sql }) => WRITE.test(sql) && seen++ === index,
    );
    void victim.start('order', workflowId).catch(() => undefined);
    await held.happened;
    await waitUntil(() => isThere(proof, workflowId), 'the write is committed');
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
