import { afterAll, afterEach, beforeAll, expect, expectTypeOf, test } from 'vitest';
import {
  defineWorkflow,
  mapWorkflows,
  MapFailedError,
  runStep,
  workflow,
  type Holdfast,
  type MapOptions,
  type MapResult,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed, type Gate } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let under = 0;
let most = 0;
const bodies: number[] = [];
const gates = new Map<number, Gate>();
/** So many have to be under way at once before any of them goes on. */
let together = 0;
let met = gate();

/** Fails for negative numbers, and waits for the others and at its gate if there is one. */
const child = defineWorkflow('child', async (n: number) => {
  most = Math.max(most, ++under);
  bodies.push(n);
  if (most >= together) met.open();
  try {
    await met.opened;
    await gates.get(n)?.opened;
    await runStep('work', () => new Promise((resolve) => setTimeout(resolve, 2)));
    if (n < 0) throw new RangeError(`no ${String(n)}`);
    return n * 10;
  } finally {
    under -= 1;
  }
});
const brief = (results: readonly MapResult<unknown>[]): unknown[] =>
  results.map((result) =>
    result.ok ? result.value : ((result.error as { code?: string; name: string }).code ?? (result.error as Error).name),
  );
let afterwards: () => Promise<unknown> = () => Promise.resolve();
const parent = defineWorkflow('parent', async (inputs: number[], options: MapOptions) => {
  const mapped = await mapWorkflows(child, inputs, options).then(
    (results) => brief(results),
    (error: unknown) =>
      error instanceof MapFailedError
        ? [error.code, (error.cause as Error).message, ...brief(error.results)]
        : Promise.reject(error as Error),
  );
  await afterwards();
  return mapped;
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [parent, child], queues: [{ name: 'q', concurrency: 2 }] });
});
afterEach(() => {
  under = 0;
  most = 0;
  bodies.length = 0;
  gates.clear();
  together = 0;
  met = gate();
  afterwards = () => Promise.resolve();
});
afterAll(() => bed.close());

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

async function statuses(parentId: string): Promise<Record<string, number>> {
  const { rows } = await bed.sql.query<{ status: string; n: number }>(
    'SELECT status, count(*)::int AS n FROM holdfast.workflow_status WHERE parent_id = $1 GROUP BY status',
    [parentId],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

test('mapWorkflows runs a child for each input, at most so many at once, and returns the results in the order of the inputs', async () => {
  together = 3;
  const handle = await holdfast.start(parent, {}, [3, -1, 4, 1, -5, 9, 2, 6], { concurrency: 3 });
  expect(await handle.result()).toEqual([30, 'RangeError', 40, 10, 'RangeError', 90, 20, 60]);
  expect(most).toBe(3);
  expect(await statuses(handle.workflowId)).toEqual({ SUCCESS: 6, ERROR: 2 });
});

test('the children of a map keep to the limits of their queue, too', async () => {
  together = 2;
  const handle = await holdfast.start(parent, {}, numbers(8), { concurrency: 6, queue: 'q' });
  expect(await handle.result()).toEqual(numbers(8).map((n) => n * 10));
  expect(most).toBe(2);
});

test('no input: no child, and an empty list', async () => {
  expect(await (await holdfast.start(parent, {}, [], { concurrency: 1, minSuccessful: 0 })).result()).toEqual([]);
});

test('once enough have succeeded, the others are cancelled or not started, and the map succeeds', async () => {
  gates.set(2, gate());
  const handle = await holdfast.start(parent, {}, numbers(30), { concurrency: 3, minSuccessful: 5 });
  const results = await handle.result();
  expect(results.slice(0, 3)).toEqual([10, 'WORKFLOW_CANCELLED', 30]);
  expect(results.filter((result) => typeof result === 'number').length).toBeGreaterThanOrEqual(5);
  expect(results.at(-1)).toBe('MAP_INPUT_SKIPPED');
  expect(await statuses(handle.workflowId)).not.toHaveProperty('PENDING');
});

test('once more have failed than is tolerated, the map fails with all results, and the rest is cancelled', async () => {
  gates.set(1, gate());
  const handle = await holdfast.start(parent, {}, [1, -2, -3, 4, 5], { concurrency: 2, toleratedFailures: 1 });
  expect(await handle.result()).toEqual([
    'MAP_FAILED', 'no -2', 'WORKFLOW_CANCELLED', 'RangeError', 'RangeError', 'MAP_INPUT_SKIPPED', 'MAP_INPUT_SKIPPED',
  ]); // prettier-ignore
});

test('a map fails as soon as minSuccessful cannot be reached any more', async () => {
  const handle = await holdfast.start(parent, {}, [-1, -2, 3, 4, 5], { concurrency: 1, minSuccessful: 4 });
  expect(await handle.result()).toEqual([
    'MAP_FAILED', 'no -1', 'RangeError', 'RangeError', 'MAP_INPUT_SKIPPED', 'MAP_INPUT_SKIPPED', 'MAP_INPUT_SKIPPED',
  ]); // prettier-ignore
});

test('a map that fails fails its workflow, and its error is stored without the results', async () => {
  const failing = defineWorkflow('failing', () => mapWorkflows(child, [-1], { concurrency: 1, toleratedFailures: 0 }));
  const other = await bed.launch({ workflows: [failing, child] });
  const caught: unknown = await (await other.start(failing, {})).result().catch((error: unknown) => error);
  expect(caught).toBeInstanceOf(MapFailedError);
  expect(caught).toMatchObject({ code: 'MAP_FAILED', cause: { message: 'no -1' } });
  await other.close();
});

test.each<[string, Partial<MapOptions>]>([
  ['no concurrency', {}],
  ['a concurrency of none', { concurrency: 0 }],
  ['more successes than inputs', { concurrency: 1, minSuccessful: 3 }],
  ['a negative number of failures', { concurrency: 1, toleratedFailures: -1 }],
  ['an unknown option', { concurrency: 1, tolerated: 1 } as Partial<MapOptions>],
  ['a key without a queue', { concurrency: 1, key: 'k' }],
])('%s is refused before anything is recorded', async (_, options) => {
  const handle = await holdfast.start(parent, {}, [1, 2], options as MapOptions);
  await expect(handle.result()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(await statuses(handle.workflowId)).toEqual({});
});

test('outside of a workflow, and with what is no workflow, it is refused', async () => {
  await expect(mapWorkflows(child, [1], { concurrency: 1 })).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  const wrong = defineWorkflow('wrong', () => mapWorkflows((n: number) => Promise.resolve(n), [1], { concurrency: 1 }));
  const other = await bed.launch({ workflows: [wrong] });
  await expect((await other.start(wrong, {})).result()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_REGISTERED' });
  await other.close();
});

test('an input that cannot be stored, or a queue that does not exist, fails that input only', async () => {
  const mixed = defineWorkflow('mixed', async () => {
    const bad = await mapWorkflows(child, [1, (() => 2) as unknown as number, 3], { concurrency: 2 });
    const lost = await mapWorkflows(child, [1], { concurrency: 1, queue: 'nowhere' });
    return [...brief(bad), ...brief(lost)];
  });
  const other = await bed.launch({ workflows: [mixed, child] });
  expect(await (await other.start(mixed, {})).result()).toEqual([10, 'VALUE_NOT_SERIALIZABLE', 30, 'QUEUE_NOT_FOUND']);
  await other.close();
});

test.each([
  ['started in the process', {}],
  ['in a queue', { queue: 'q' }],
])(
  'C28 a map whose executor dies in the middle goes on where it was: no child is started twice (%s)',
  async (_, where) => {
    gates.set(5, gate());
    const first = await bed.launch({ workflows: [parent, child], appVersion: 'dying' });
    const handle = await first.start(parent, {}, numbers(12), { concurrency: 2, ...where });
    await waitUntil(() => bodies.includes(5) && bodies.length > 6, 'it is in the middle');
    const second = await bed.launch({ workflows: [parent, child], appVersion: 'dying' });
    await bed.expireLease(first.executorId);
    await waitUntil(
      async () => (await second.admin.get(handle.workflowId)).executorId === second.executorId,
      'it is taken over',
    );
    gates.get(5)?.open();
    expect(await second.handle(handle.workflowId).result()).toEqual(numbers(12).map((n) => n * 10));
    expect(await statuses(handle.workflowId)).toEqual({ SUCCESS: 12 });
    await first.close();
    await second.close();
  },
);

test('a replay of a map that ended early takes the same path, and cancels nobody a second time', async () => {
  gates.set(2, gate());
  const reached = gate();
  afterwards = () => {
    reached.open();
    return runStep('hang', () => (workflow().epoch === 1 ? new Promise(() => undefined) : Promise.resolve()));
  };
  const handle = await holdfast.start(parent, {}, numbers(20), { concurrency: 4, minSuccessful: 6 });
  await reached.opened;
  const before = await bed.sql.query(
    `SELECT workflow_id, status FROM holdfast.workflow_status WHERE parent_id = $1 ORDER BY 1`,
    [handle.workflowId],
  );
  const audits = async (): Promise<number> =>
    (await bed.sql.query(`SELECT FROM holdfast.admin_audit WHERE verb = 'cancel' AND reason LIKE 'mapWorkflows%'`)).rows
      .length;
  const cancels = await audits();
  await holdfast.admin.cancel(handle.workflowId, { children: 'keep' });
  await holdfast.admin.rewind(handle.workflowId, {
    toStep: (await holdfast.admin.steps(handle.workflowId)).items.length,
  });
  const results = await handle.result();
  expect(results.filter((result) => typeof result === 'number').length).toBeGreaterThanOrEqual(6);
  const after = await bed.sql.query(
    `SELECT workflow_id, status FROM holdfast.workflow_status WHERE parent_id = $1 ORDER BY 1`,
    [handle.workflowId],
  );
  expect(after.rows).toEqual(before.rows);
  expect(await audits()).toBe(cancels);
});

test('cancelling the workflow cancels the children of its map', async () => {
  for (const n of numbers(3)) gates.set(n, gate());
  const handle = await holdfast.start(parent, {}, numbers(9), { concurrency: 3 });
  await waitUntil(() => bodies.length === 3, 'three run');
  await handle.cancel();
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(await statuses(handle.workflowId)).toEqual({ CANCELLED: 3 });
});

test('input and result have the types of the workflow', () => {
  const typed = (): Promise<MapResult<number>[]> => mapWorkflows(child, [1], { concurrency: 1 });
  expectTypeOf(typed).returns.resolves.toEqualTypeOf<MapResult<number>[]>();
  // @ts-expect-error a text is no input of this workflow
  const wrong = (): unknown => mapWorkflows(child, ['1'], { concurrency: 1 });
  expect([typed, wrong]).toHaveLength(2);
});
