import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed, type Gate } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let body: Gate;
const reported = defineWorkflow(
  'reported',
  async () => {
    await runStep('slow', () => body.opened);
    return runStep('after', () => Promise.resolve('went on'));
  },
  { stuckAfter: 50 },
);
const failed = defineWorkflow('failed', () => runStep('slow', () => body.opened), { stuckAfter: 50, onStuck: 'fail' });
const between = defineWorkflow('between', () => body.opened, { stuckAfter: 50 });
const asleep = defineWorkflow(
  'asleep',
  async () => {
    await sleep('1h');
  },
  { stuckAfter: 50 },
);
const patient = defineWorkflow('patient', () => runStep('slow', () => body.opened));

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [reported, failed, between, asleep, patient] });
});
afterAll(() => bed.close());

const attentionOf = async (workflowId: string): Promise<string | undefined> =>
  (await holdfast.admin.get(workflowId)).attention?.code;

test('an execution that makes no progress is listed for attention, goes on, and is taken off the list', async () => {
  body = gate();
  const before = holdfast.metrics().stuck;
  const handle = await holdfast.start(reported, { workflowId: 'reported' });
  await waitUntil(async () => (await attentionOf('reported')) === 'STUCK', 'it is listed');
  expect(holdfast.metrics().stuck).toBe(before + 1);
  expect((await holdfast.admin.list({ attention: true })).items.map(({ workflowId }) => workflowId)).toEqual([
    'reported',
  ]);
  body.open();
  expect(await handle.result()).toBe('went on');
  expect(await holdfast.admin.get('reported')).toMatchObject({ attention: null, epoch: 1, attempts: 1 });
});

test('so is code that stands still between two calls; another execution begins without the mark', async () => {
  body = gate();
  await holdfast.start(between, { workflowId: 'between' });
  await waitUntil(async () => (await attentionOf('between')) === 'STUCK', 'it is listed');
  await bed.expireLease(holdfast.executorId);
  const other = await bed.launch({ workflows: [between], pollInterval: 20 });
  await waitUntil(async () => (await holdfast.admin.get('between')).epoch > 1, 'it is taken over');
  body.open();
  await holdfast.handle('between').result();
  expect(await attentionOf('between')).toBeUndefined();
  await other.close();
});

test('onStuck: fail ends it as ERROR, and its body is told', async () => {
  body = gate();
  const handle = await holdfast.start(failed, { workflowId: 'failed' });
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_STUCK' });
  expect(await holdfast.admin.get('failed')).toMatchObject({ status: 'ERROR', attention: { code: 'STUCK' } });
  body.open();
});

test('what waits is not stuck, nor is what has no stuckAfter', async () => {
  body = gate();
  const before = holdfast.metrics().stuck;
  await holdfast.start(asleep, { workflowId: 'asleep' });
  await holdfast.start(patient, { workflowId: 'patient' });
  await holdfast.start(reported, { workflowId: 'witness' });
  await waitUntil(async () => (await attentionOf('witness')) === 'STUCK', 'the one that is stuck is found');
  expect(await attentionOf('asleep')).toBeUndefined();
  expect(await attentionOf('patient')).toBeUndefined();
  expect(holdfast.metrics().stuck).toBe(before + 1);
  body.open();
  await holdfast.admin.cancel('asleep');
});

test('one that was stuck, goes on and is unloaded is off the list while it sleeps', async () => {
  body = gate();
  const tired = defineWorkflow(
    'tired',
    async () => {
      await runStep('slow', () => body.opened);
      await sleep('1h');
    },
    { stuckAfter: 50 },
  );
  const own = await bed.launch({ workflows: [tired], suspendAfter: 1 });
  await own.start(tired, { workflowId: 'tired' });
  await waitUntil(async () => (await attentionOf('tired')) === 'STUCK', 'it is listed');
  body.open();
  await waitUntil(async () => (await holdfast.admin.get('tired')).status === 'SUSPENDED', 'it is unloaded');
  expect(await attentionOf('tired')).toBeUndefined();
  await own.close();
});

test('options that are none are refused', () => {
  expect(() => defineWorkflow('bad', () => Promise.resolve(), { onStuck: 'panic' as never })).toThrow(/onStuck/);
  expect(() => defineWorkflow('bad', () => Promise.resolve(), { stuckAfter: 'soon' as never })).toThrow(/stuckAfter/);
});

test('the ownership after a resume or a rewind says so', async () => {
  const brief = defineWorkflow('brief', () => Promise.resolve());
  const own = await bed.launch({ workflows: [brief] });
  await (await own.start(brief, { workflowId: 'brief' })).result();
  await own.admin.rewind('brief', { toStep: 0 });
  await own.handle('brief').result();
  const { items } = await own.admin.ownership('brief');
  expect(items.map(({ reason }) => reason)).toEqual(['resumed', 'started']);
  await own.close();
});

test('redundant wake-ups are free: a hundred for one workflow lead to one claim', async () => {
  const runs: number[] = [];
  const woken = defineWorkflow('woken', () => runStep('once', () => Promise.resolve(runs.push(1))));
  const executors = await Promise.all(
    ['one', 'two', 'three'].map((executorId) => bed.launch({ workflows: [woken], executorId, pollInterval: '1h' })),
  );
  await bed.sql.query('BEGIN');
  await bed.sql.query(`SELECT holdfast.enqueue_workflow('woken', '[]', p_workflow_id => 'woken')`);
  await bed.sql.query('COMMIT');
  for (let wake = 0; wake < 100; wake++) await bed.sql.query(`SELECT pg_notify('holdfast.work', '')`);
  await holdfast.handle('woken').result();
  expect(runs).toHaveLength(1);
  expect(await holdfast.admin.get('woken')).toMatchObject({ epoch: 1, attempts: 1 });
  expect(executors.reduce((sum, executor) => sum + executor.metrics().claimed, 0)).toBe(1);
  // Hints that came during a claim led to one more at most, not to one each.
  await Promise.all(executors.map((executor) => executor.close()));
});
