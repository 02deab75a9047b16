import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, mapWorkflows, runStep, workflow, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let childBody: (input: string) => Promise<string> = (input) => Promise.resolve(`child of ${input}`);
let parentBody: (input: string) => Promise<unknown> = (input) => child(input);
let childRuns = 0;
let count = 0;
const child = defineWorkflow('child', (input: string) => {
  childRuns += 1;
  return childBody(input);
});
const parent = defineWorkflow('parent', (input: string) => parentBody(input));

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [parent, child] });
});
afterAll(() => bed.close());

async function childrenOf(parentId: string): Promise<{ workflowId: string; status: string }[]> {
  return [...(await holdfast.admin.list({ parentId })).items];
}

test('a workflow called inside another is its child, and its outcome is recorded with the parent', async () => {
  const handle = await holdfast.start(parent, { workflowId: 'p1' }, 'p1');
  expect(await handle.result()).toBe('child of p1');
  const [found] = await childrenOf('p1');
  expect(found).toMatchObject({ status: 'SUCCESS', parent: { workflowId: 'p1', seq: 0 } });
});

test('children have children to any depth, whatever the length of their IDs', async () => {
  parentBody = (input) => (input === '' ? Promise.resolve(workflow().workflowId) : parent(input.slice(1)));
  const handle = await holdfast.start(parent, { workflowId: 'x'.repeat(512) }, '.'.repeat(60));
  const deepest = (await handle.result()) as string;
  expect(Buffer.byteLength(deepest)).toBeLessThanOrEqual(512);
  expect((await holdfast.admin.get(deepest)).status).toBe('SUCCESS');
});

test("a child's error reaches the parent as what it was", async () => {
  childBody = () => Promise.reject(new RangeError('too far'));
  parentBody = (input) =>
    child(input).catch((error: unknown) => [error instanceof RangeError, (error as Error).message]);
  expect(await (await holdfast.start(parent, {}, 'x')).result()).toEqual([true, 'too far']);
  childBody = (input) => Promise.resolve(`child of ${input}`);
});

test('C28 a recorded child is found on replay, not started again', async () => {
  childRuns = 0;
  const reached = gate();
  parentBody = async (input) => {
    const value = await child(input);
    reached.open();
    await runStep('hang', () => (workflow().epoch === 1 ? new Promise(() => undefined) : Promise.resolve()));
    return value;
  };
  const handle = await holdfast.start(parent, { workflowId: 'p2' }, 'p2');
  await reached.opened;
  await holdfast.admin.cancel('p2');
  await holdfast.admin.resume('p2');
  expect(await handle.result()).toBe('child of p2');
  expect(childRuns).toBe(1);
  expect(await childrenOf('p2')).toHaveLength(1);
});

test('C28 a child that runs while its parent is taken over is waited for, not started again', async () => {
  childRuns = 0;
  const hold = gate();
  childBody = async (input) => {
    await hold.opened;
    return `late child of ${input}`;
  };
  parentBody = (input) => child(input);
  const handle = await holdfast.start(parent, { workflowId: 'p3' }, 'p3');
  await waitUntil(async () => (await childrenOf('p3')).length === 1, 'the child is there');
  await holdfast.admin.cancel('p3', { children: 'keep' });
  await holdfast.admin.resume('p3');
  hold.open();
  expect(await handle.result()).toBe('late child of p3');
  expect(childRuns).toBe(1);
  childBody = (input) => Promise.resolve(`child of ${input}`);
});

test('C28 a parent that has lost ownership creates no child', async () => {
  const go = gate();
  const entered = gate();
  parentBody = async (input) => {
    entered.open();
    await go.opened;
    return child(input);
  };
  await holdfast.start(parent, { workflowId: 'p4' }, 'p4');
  await entered.opened;
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET owner_token = gen_random_uuid(), record_version = record_version + 1, epoch = epoch + 1
      WHERE workflow_id = 'p4'`,
  );
  go.open();
  await waitUntil(() => holdfast.health().running === 0, 'the execution has parked');
  expect(await childrenOf('p4')).toEqual([]);
});

test('a child is started with a handle, and its result is awaited durably', async () => {
  parentBody = async (input) => {
    const handle = await holdfast.start(child, { workflowId: `${input}-named` }, input);
    return [handle.workflowId, await handle.result()];
  };
  expect(await (await holdfast.start(parent, {}, 'p5')).result()).toEqual(['p5-named', 'child of p5']);
});

test('children run in parallel, and a child ID that belongs to another name is refused', async () => {
  parentBody = async (input) => {
    const all = await Promise.all([child(`${input}a`), child(`${input}b`), child(`${input}c`)]);
    const refused: unknown = await holdfast
      .start(child, { workflowId: workflow().workflowId }, 'x')
      .catch((e: unknown) => e);
    return [all, (refused as { code: string }).code];
  };
  expect(await (await holdfast.start(parent, {}, 'p')).result()).toEqual([
    ['child of pa', 'child of pb', 'child of pc'],
    'WORKFLOW_ID_CONFLICT',
  ]);
});

test.each(['cancel', 'abandon'] as const)(
  'cancelling a parent does to its child what was chosen: %s',
  async (choice) => {
    const hold = gate();
    childBody = async () => {
      await hold.opened;
      return 'done';
    };
    parentBody = async (input) =>
      (await holdfast.start(child, { workflowId: `${input}-child`, onParentCancel: choice }, input)).result();
    const handle = await holdfast.start(parent, { workflowId: `close-${choice}` }, `close-${choice}`);
    await waitUntil(async () => (await childrenOf(`close-${choice}`)).length === 1, 'the child is there');
    await handle.cancel();
    hold.open();
    const outcome = await holdfast
      .handle(`close-${choice}-child`)
      .result()
      .catch((e: unknown) => (e as { code: string }).code);
    expect(outcome).toBe(choice === 'cancel' ? 'WORKFLOW_CANCELLED' : 'done');
    childBody = (input) => Promise.resolve(`child of ${input}`);
  },
);

test('C69 a rewound parent starts new children; the ones before are cancelled', async () => {
  const hold = gate();
  childBody = async () => {
    await hold.opened;
    return 'done';
  };
  parentBody = (input) => child(input);
  const handle = await holdfast.start(parent, { workflowId: 'p6' }, 'p6');
  await waitUntil(async () => (await childrenOf('p6')).length === 1, 'the first child is there');
  await holdfast.admin.rewind('p6', { toStep: 0 });
  await waitUntil(async () => (await childrenOf('p6')).length === 2, 'the second child is there');
  hold.open();
  expect(await handle.result()).toBe('done');
  expect((await childrenOf('p6')).map(({ status }) => status).sort()).toEqual(['CANCELLED', 'SUCCESS']);
});

test.each<[string, (input: string) => Promise<unknown>]>([
  ['a child that is refused', () => child(Symbol('unstorable') as unknown as string)],
  ['a child whose ID is taken', (input) => holdfast.start(child, { workflowId: input }, 'x')],
  ['a child with a wrong option', (input) => holdfast.start(child, { timeout: -1 }, input)],
  ['the result of a workflow that is not there', () => holdfast.handle('nowhere').result()],
])('%s is recorded as a failed call, so that code which catches it is replayed like any other', async (_, fails) => {
  const reached = gate();
  let hangs = true;
  parentBody = async (input) => {
    const error: unknown = await fails(input).catch((thrown: unknown) => thrown);
    const value = await runStep('after', () => Promise.resolve(1));
    reached.open();
    await runStep('hang', () => (hangs ? new Promise(() => undefined) : Promise.resolve()));
    return [(error as { code: string }).code, value];
  };
  const workflowId = `refused-${String(++count)}`;
  const handle = await holdfast.start(parent, { workflowId }, workflowId);
  await reached.opened;
  await handle.cancel();
  hangs = false;
  await holdfast.admin.resume(workflowId);
  const [code, value] = (await handle.result()) as [string, number];
  expect(code).toMatch(/^[A-Z_]+$/);
  expect(value).toBe(1);
  expect((await holdfast.admin.steps(workflowId)).items.map(({ seq }) => seq)).toEqual([0, 1, 2]);
});

test.each<[string, (input: string) => Promise<unknown>]>([
  ['called', (input) => child(input)],
  ['started', async (input) => (await holdfast.start(child, {}, input)).result()],
  ['enqueued', async (input) => (await holdfast.enqueue(child, {}, input)).result()],
  ['mapped', async (input) => (await mapWorkflows(child, [input], { concurrency: 1 }))[0]],
])('C71 a parent that has the ID of a deleted one runs children of its own: %s', async (how, body) => {
  parentBody = body;
  childBody = (input) => Promise.resolve(`child of ${input}`);
  childRuns = 0;
  const id = `taken again, ${how}`;
  const result = async (input: string): Promise<string> =>
    JSON.stringify(await (await holdfast.start(parent, { workflowId: id }, input)).result());
  expect(await result('the first')).toContain('child of the first');
  await holdfast.admin.delete(id);
  expect(await result('the second')).toContain('child of the second');
  expect(childRuns).toBe(2);
});

test('C23 the outcomes of two workflows are not taken for one another when the code swaps them', async () => {
  const [one, two] = await Promise.all(
    ['one', 'two'].map(async (id) => holdfast.start(child, { workflowId: `swap-${id}` }, id)),
  );
  let order = [one, two];
  const reached = gate();
  parentBody = async () => {
    const results = [await order[0]?.result(), await order[1]?.result()];
    reached.open();
    await runStep('hang', () => new Promise(() => undefined));
    return results;
  };
  const handle = await holdfast.start(parent, {}, '');
  await reached.opened;
  await handle.cancel();
  order = [two, one];
  await holdfast.admin.resume(handle.workflowId);
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
});
