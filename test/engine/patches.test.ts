import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, deprecatePatch, patched, runStep, sleep, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

// One workflow, and the code of two deploys.

let bed: Bed;
let holdfast: Holdfast;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [run] });
});
afterAll(() => bed.close());

let count = 0;
const bodies: string[] = [];
function mark(name: string): Promise<string> {
  return runStep(name, () => {
    bodies.push(name);
    return Promise.resolve(name);
  });
}

/** Runs `first` until it hangs after its last call, takes it away, and lets it go on with the code of `second`. */
async function deploy(first: () => Promise<unknown>, second: () => Promise<unknown>): Promise<string> {
  const workflowId = `deploy-${String(++count)}`;
  const reached = gate();
  scenario = async () => {
    await first();
    reached.open();
    await runStep('hang', () => new Promise(() => undefined));
  };
  await holdfast.start(run, { workflowId });
  await reached.opened;
  await resumeWith(workflowId, second);
  return workflowId;
}

async function resumeWith(workflowId: string, code: () => Promise<unknown>): Promise<void> {
  if ((await holdfast.handle(workflowId).status()) === 'PENDING') await holdfast.admin.cancel(workflowId);
  bodies.length = 0;
  scenario = code;
  await holdfast.admin.resume(workflowId);
}

async function recorded(workflowId: string): Promise<string[]> {
  const { items } = await holdfast.admin.steps(workflowId);
  return items.map(({ kind, name }) => `${kind} ${name}`);
}

const result = (workflowId: string): Promise<unknown> => holdfast.handle(workflowId).result();
const isBlocked = (workflowId: string): Promise<void> =>
  waitUntil(async () => (await holdfast.handle(workflowId).status()) === 'BLOCKED', 'it is blocked');

const before = async (): Promise<unknown> => [await mark('a'), await mark('old'), await mark('z')];
const after = async (): Promise<unknown> => [
  await mark('a'),
  (await patched('change')) ? await mark('new') : await mark('old'),
  await mark('z'),
];
const deprecated = async (): Promise<unknown> => {
  const a = await mark('a');
  await deprecatePatch('change');
  return [a, await mark('new'), await mark('z')];
};
const cleaned = async (): Promise<unknown> => [await mark('a'), await mark('new'), await mark('z')];

test('a workflow that passed the place on older code takes the older path, without a marker', async () => {
  const workflowId = await deploy(before, after);
  expect(await result(workflowId)).toEqual(['a', 'old', 'z']);
  expect(bodies).toEqual([]);
  expect(await recorded(workflowId)).toEqual(['step a', 'step old', 'step z']);
});

test('a workflow that comes to the place for the first time takes the changed path, also when it began on older code', async () => {
  const workflowId = await deploy(() => mark('a'), after);
  expect(await result(workflowId)).toEqual(['a', 'new', 'z']);
  expect(bodies).toEqual(['new', 'z']);
  expect(await recorded(workflowId)).toEqual(['step a', 'patch change', 'step new', 'step z']);
});

test('a marker is replayed: the changed path is taken again, and nothing runs twice', async () => {
  const workflowId = await deploy(after, after);
  expect(await result(workflowId)).toEqual(['a', 'new', 'z']);
  expect(bodies).toEqual([]);
});

test('an executor that dies right after the marker: the next one finds it and takes the changed path', async () => {
  const dying = await bed.launch({ workflows: [run], executorId: 'dying', maxConcurrent: 1 });
  const workflowId = `deploy-${String(++count)}`;
  const marked = gate<boolean>();
  scenario = async () => {
    const isChanged = await patched('change');
    if (isChanged) marked.open(true);
    await new Promise(() => undefined);
  };
  await dying.start(run, { workflowId });
  expect(await marked.opened).toBe(true);
  scenario = async () => [await patched('change'), await mark('after')];
  await bed.expireLease('dying');
  expect(await result(workflowId)).toEqual([true, 'after']);
  expect(await recorded(workflowId)).toEqual(['patch change', 'step after']);
});

test('deprecatePatch passes over a marker, and records none', async () => {
  const marked = await deploy(after, deprecated);
  expect(await result(marked)).toEqual(['a', 'new', 'z']);
  expect(bodies).toEqual([]);
  const fresh = await deploy(deprecated, deprecated);
  expect(await result(fresh)).toEqual(['a', 'new', 'z']);
  expect(await recorded(fresh)).toEqual(['step a', 'step new', 'step z']);
});

test('the call can go when no marker is left; a workflow that has one is BLOCKED, and goes on with deprecatePatch', async () => {
  expect(await result(await deploy(deprecated, cleaned))).toEqual(['a', 'new', 'z']);
  const marked = await deploy(after, cleaned);
  await isBlocked(marked);
  await resumeWith(marked, deprecated);
  expect(await result(marked)).toEqual(['a', 'new', 'z']);
  expect(bodies).toEqual([]);
});

test('a workflow from before the change is BLOCKED by deprecatePatch, and finishes on code that still asks', async () => {
  const workflowId = await deploy(before, deprecated);
  await isBlocked(workflowId);
  await resumeWith(workflowId, after);
  expect(await result(workflowId)).toEqual(['a', 'old', 'z']);
});

test('each call stands for itself: in a loop, the rounds that are recorded stay, and the later ones are changed', async () => {
  const rounds = (isChanged: (round: number) => Promise<boolean>) => async (): Promise<unknown> => {
    const results: string[] = [];
    for (let round = 0; round < 4; round++) {
      results.push((await isChanged(round)) ? await mark(`new ${String(round)}`) : await mark(`old ${String(round)}`));
    }
    return results;
  };
  const changed = rounds(() => patched('loop'));
  const workflowId = await deploy(async () => {
    await mark('old 0');
    await mark('old 1');
  }, changed);
  expect(await result(workflowId)).toEqual(['old 0', 'old 1', 'new 2', 'new 3']);
  await holdfast.admin.rewind(workflowId, { toStep: 5 });
  expect(await result(workflowId)).toEqual(['old 0', 'old 1', 'new 2', 'new 3']);
});

test('two changes at one place are told apart by their names', async () => {
  const second = async (): Promise<unknown> => [await patched('later'), await patched('change'), await mark('z')];
  const workflowId = await deploy(async () => [await patched('change'), await mark('z')], second);
  expect(await result(workflowId)).toEqual([false, true, 'z']);
});

test('a call of older code that has no result yet, and later ones that have, are the older path', async () => {
  let isStuck = true;
  const slow = (): Promise<string> =>
    runStep('slow', () => (isStuck ? new Promise<string>(() => undefined) : Promise.resolve('slow')));
  const workflowId = await deploy(
    async () => {
      void slow();
      await mark('fast');
    },
    async () => {
      isStuck = false;
      const isChanged = await patched('change');
      return [isChanged, ...(await Promise.all([slow(), mark('fast')]))];
    },
  );
  expect(await result(workflowId)).toEqual([false, 'slow', 'fast']);
});

test('C27 a marker is recorded before whatever was called after it, also at the end of a replay', async () => {
  const branches = async (): Promise<unknown> =>
    Promise.all([
      mark('x').then(() => patched('change')),
      mark('y').then(async () => {
        await sleep(1);
        return mark('after y');
      }),
    ]);
  const workflowId = await deploy(() => Promise.all([mark('x'), mark('y')]), branches);
  expect(await result(workflowId)).toEqual([true, 'after y']);
  const { rows } = await bed.sql.query<{ kind: string }>(
    `SELECT kind FROM (SELECT kind, record_version FROM holdfast.step_result WHERE workflow_id = $1 AND kind = 'patch'
       UNION ALL SELECT kind, record_version FROM holdfast.step_intent WHERE workflow_id = $1) r ORDER BY record_version`,
    [workflowId],
  );
  expect(rows.map(({ kind }) => kind)).toEqual(['patch', 'sleep']);
  await holdfast.admin.rewind(workflowId, { toStep: 5 });
  expect(await result(workflowId)).toEqual([true, 'after y']);
});

test('a marker whose name cannot be stored is refused; outside of a workflow there is none', async () => {
  scenario = async () => {
    await patched('');
  };
  await expect(holdfast.start(run, {}).then((handle) => handle.result())).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  await expect(patched('change')).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  await expect(deprecatePatch('change')).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
});
