import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep, step, workflow, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed, type Gate } from '../support/launch.js';

// Two executors in one process. The first is taken for dead while it lives: it becomes a zombie.

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

interface Zombie {
  readonly zombie: Holdfast;
  readonly owner: Holdfast;
  readonly workflowId: string;
  /** The zombie's handle. */
  readonly result: Promise<unknown>;
  /** Lets the zombie's first step body go on. */
  readonly release: Gate;
  readonly bodies: { readonly step: string; readonly epoch: number }[];
  readonly signals: AbortSignal[];
}

let count = 0;

/** Starts a workflow whose first step hangs in its first epoch, and has a second executor take it over and finish it. */
async function makeZombie(swallow: boolean): Promise<Zombie> {
  const bodies: Zombie['bodies'] = [];
  const signals: AbortSignal[] = [];
  const release = gate();
  const started = gate();
  const attempt = (name: string, body: () => Promise<unknown>): Promise<unknown> =>
    runStep(name, async () => {
      bodies.push({ step: name, epoch: workflow().epoch });
      return body();
    });
  const run = defineWorkflow(`zombie-${String(++count)}`, async () => {
    const first = attempt('first', async () => {
      if (workflow().epoch > 1) return 'by the owner';
      signals.push(step().signal);
      started.open();
      await release.opened;
      return 'by the zombie';
    });
    const value = swallow ? await first.catch(() => 'swallowed') : await first;
    const second = attempt('second', () => Promise.resolve(workflow().epoch));
    return [value, swallow ? await second.catch(() => 'swallowed') : await second];
  });
  const workflowId = `zombie-${String(count)}`;
  const zombie = await bed.launch({ workflows: [run], executorId: `zombie-${String(count)}`, pollInterval: '1h' });
  const result = (await zombie.start(run, { workflowId })).result();
  result.catch(() => undefined);
  await started.opened;
  const owner = await bed.launch({ workflows: [run], executorId: `owner-${String(count)}` });
  await bed.expireLease(zombie.executorId);
  return { zombie, owner, workflowId, result, release, bodies, signals };
}

test.each([
  ['', false],
  [' although its code swallows the error', true],
])('a zombie writes nothing, starts no further body, and returns the recorded outcome%s', async (_, swallow) => {
  const { owner, workflowId, result, release, bodies } = await makeZombie(swallow);
  expect(await owner.handle(workflowId).result()).toEqual(['by the owner', 2]);
  const before = await snapshot(workflowId);
  release.open();
  expect(await result).toEqual(['by the owner', 2]);
  expect(await snapshot(workflowId)).toEqual(before);
  expect(bodies).toEqual([
    { step: 'first', epoch: 1 },
    { step: 'first', epoch: 2 },
    { step: 'second', epoch: 2 },
  ]);
});

test('C5 a zombie that had computed its own outcome returns the recorded one', async () => {
  const gates = [gate(), gate()];
  const run = defineWorkflow('late-outcome', async () => {
    const { epoch } = workflow();
    await gates[epoch - 1]?.opened;
    if (epoch === 1) throw new Error('the zombie fails');
    return `by epoch ${String(epoch)}`;
  });
  const zombie = await bed.launch({ workflows: [run], pollInterval: '1h' });
  const result = (await zombie.start(run, { workflowId: 'late-outcome' })).result();
  const owner = await bed.launch({ workflows: [run] });
  await bed.expireLease(zombie.executorId);
  await waitUntil(async () => (await owner.admin.get('late-outcome')).epoch === 2, 'it is taken over');
  gates[1]?.open();
  expect(await owner.handle('late-outcome').result()).toBe('by epoch 2');
  gates[0]?.open();
  expect(await result).toBe('by epoch 2');
});

test('C7 a workflow deleted under its execution: the handle rejects with not-found', async () => {
  const hang = gate();
  const run = defineWorkflow('deleted', () => runStep('hangs', () => hang.opened));
  const holdfast = await bed.launch({ workflows: [run] });
  const handle = await holdfast.start(run, { workflowId: 'deleted' });
  const result = handle.result();
  result.catch(() => undefined);
  await holdfast.admin.delete('deleted', { force: true });
  await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  hang.open();
});

test('C8 the same ID started twenty times at once: one execution, one outcome for all', async () => {
  let running = 0;
  let runs = 0;
  const run = defineWorkflow('once', async () => {
    runs += 1;
    running += 1;
    expect(running).toBe(1);
    await runStep('work', () => Promise.resolve());
    running -= 1;
    return runs;
  });
  const one = await bed.launch({ workflows: [run] });
  const two = await bed.launch({ workflows: [run] });
  const results = await Promise.all(
    Array.from({ length: 20 }, async (_, index) =>
      (await (index % 2 === 0 ? one : two).start(run, { workflowId: 'once' })).result(),
    ),
  );
  expect(new Set(results)).toEqual(new Set([1]));
});

test('an ID that belongs to a workflow of another name is refused', async () => {
  const one = defineWorkflow('name-one', () => Promise.resolve(1));
  const two = defineWorkflow('name-two', () => Promise.resolve(2));
  const holdfast = await bed.launch({ workflows: [one, two] });
  await (await holdfast.start(one, { workflowId: 'named' })).result();
  await expect(holdfast.start(two, { workflowId: 'named' })).rejects.toMatchObject({ code: 'WORKFLOW_ID_CONFLICT' });
});

test('C13 cancel after the last step but before the outcome ends CANCELLED; resume finishes without running it again', async () => {
  let bodies = 0;
  const hang = gate();
  const stepped = gate();
  const run = defineWorkflow('late-cancel', async () => {
    const value = await runStep('only', () => Promise.resolve(++bodies));
    stepped.open();
    await hang.opened;
    return value;
  });
  const holdfast = await bed.launch({ workflows: [run] });
  const handle = await holdfast.start(run, { workflowId: 'late-cancel' });
  const result = handle.result();
  result.catch(() => undefined);
  await stepped.opened;
  await holdfast.admin.cancel('late-cancel');
  await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(await handle.status()).toBe('CANCELLED');
  hang.open();
  await holdfast.admin.resume('late-cancel');
  expect(await handle.result()).toBe(1);
  expect(bodies).toBe(1);
});

test('C14 C19 cancellation is not recorded as a result; after resume the step gets its true one, the old body none', async () => {
  const gates = [gate<string>(), gate<string>()];
  const started = [gate(), gate()];
  const run = defineWorkflow('resumed', () =>
    runStep('asks', () => {
      const { epoch } = workflow();
      started[epoch - 1]?.open();
      return gates[epoch - 1]?.opened ?? Promise.reject(new Error('a third epoch'));
    }),
  );
  const holdfast = await bed.launch({ workflows: [run] });
  const handle = await holdfast.start(run, { workflowId: 'resumed' });
  await started[0]?.opened;
  await holdfast.admin.cancel('resumed');
  await holdfast.admin.resume('resumed');
  await started[1]?.opened;
  gates[0]?.open('old');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await holdfast.admin.steps('resumed')).items.filter((item) => item.completedAt !== null)).toEqual([]);
  gates[1]?.open('true');
  expect(await handle.result()).toBe('true');
});

test('C15 a workflow in a long sleep, or waiting for a child, ends promptly when cancelled', async () => {
  const child = defineWorkflow('sleepy-child', () => sleep('1h'));
  const run = defineWorkflow('sleepy', async (how: string) => {
    await (how === 'sleep' ? sleep('1h') : child());
  });
  const holdfast = await bed.launch({ workflows: [run, child] });
  for (const how of ['sleep', 'child']) {
    const handle = await holdfast.start(run, { workflowId: `sleepy-${how}` }, how);
    const result = handle.result();
    result.catch(() => undefined);
    await waitUntil(async () => (await holdfast.admin.steps(handle.workflowId)).items.length === 1, 'it waits');
    const begun = performance.now();
    await handle.cancel();
    await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await waitUntil(() => holdfast.health().running === 0, 'the slot is free');
    expect(performance.now() - begun).toBeLessThan(2_000);
  }
  expect((await holdfast.admin.list({ name: ['sleepy-child'], status: ['CANCELLED'] })).items).toHaveLength(1);
});

test('a cancelled execution gets its abort signal within a moment, by notification', async () => {
  const started = gate<AbortSignal>();
  const run = defineWorkflow('signalled', () =>
    runStep('waits', () => {
      started.open(step().signal);
      return new Promise(() => undefined);
    }),
  );
  const holdfast = await bed.launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  const handle = await holdfast.start(run, {});
  const signal = await started.opened;
  const aborted = new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve(signal.reason);
    });
  });
  handle.result().catch(() => undefined);
  await handle.cancel();
  expect(await aborted).toMatchObject({ code: 'OWNERSHIP_LOST' });
});

test('without notifications a cancelled execution learns it at the next heartbeat', async () => {
  const run = defineWorkflow('polled', () => runStep('waits', () => new Promise(() => undefined)));
  const holdfast = await bed.launch({ workflows: [run], notifications: false, lease: 600 });
  const handle = await holdfast.start(run, {});
  const result = handle.result();
  result.catch(() => undefined);
  await handle.cancel();
  await expect(result).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  await waitUntil(() => holdfast.health().running === 0, 'the slot is free');
});

test('C16 an outcome of run 1 that arrives after run 2 has finished changes nothing', async () => {
  const hold = gate();
  const run = defineWorkflow('two-runs', async () => {
    const { epoch } = workflow();
    if (epoch === 1) await hold.opened;
    return `run ${String(epoch)}`;
  });
  const holdfast = await bed.launch({ workflows: [run], notifications: false, lease: '1h' });
  const handle = await holdfast.start(run, { workflowId: 'two-runs' });
  const first = handle.result();
  first.catch(() => undefined);
  await holdfast.admin.cancel('two-runs');
  await holdfast.admin.resume('two-runs');
  await waitUntil(async () => (await handle.status()) === 'SUCCESS', 'run 2 finishes');
  const before = await snapshot('two-runs');
  hold.open();
  await waitUntil(() => holdfast.health().running === 0, 'run 1 has ended');
  expect(await snapshot('two-runs')).toEqual(before);
  expect(await handle.result()).toBe('run 2');
});

/** Everything that is recorded of a workflow. */
async function snapshot(workflowId: string): Promise<unknown> {
  const tables = [
    'workflow_status',
    'workflow_input',
    'workflow_outcome',
    'step_result',
    'step_intent',
    'ended_ownership',
  ];
  const all: Record<string, unknown[]> = {};
  for (const table of tables) {
    const { rows } = await bed.sql.query<Record<string, unknown>>(
      `SELECT t.*, t.xmin::text FROM holdfast.${table} t WHERE workflow_id = $1`,
      [workflowId],
    );
    all[table] = rows;
  }
  return all;
}
