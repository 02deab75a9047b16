import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, now, random, runStep, sleep, uuid, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

// A workflow is run, rewound or taken over, and run again with other code: what the deploy of a change looks like.

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

/** Runs `first` until it hangs after its last step, cancels it, and resumes it with the code of `second`. */
async function replayWith(first: () => Promise<unknown>, second: () => Promise<unknown>): Promise<string> {
  const workflowId = `replay-${String(++count)}`;
  const reached = gate();
  scenario = async () => {
    await first();
    reached.open();
    await runStep('hang', () => new Promise(() => undefined));
  };
  await holdfast.start(run, { workflowId });
  await reached.opened;
  await holdfast.admin.cancel(workflowId);
  bodies.length = 0;
  scenario = second;
  await holdfast.admin.resume(workflowId);
  return workflowId;
}

const original = async (): Promise<unknown> => [await mark('a'), await mark('b'), await mark('c')];

test('recorded steps are replayed without running their bodies', async () => {
  const workflowId = await replayWith(original, original);
  expect(await holdfast.handle(workflowId).result()).toEqual(['a', 'b', 'c']);
  expect(bodies).toEqual([]);
});

test.each<[string, () => Promise<unknown>]>([
  ['reordered', async () => [await mark('b'), await mark('a'), await mark('c')]],
  ['renamed', async () => [await mark('a'), await mark('renamed'), await mark('c')]],
  ['removed in the middle', async () => [await mark('a'), await mark('c')]],
  ['removed at the end', async () => [await mark('a'), await mark('b')]],
  ['added in the middle', async () => [await mark('a'), await mark('added'), await mark('b'), await mark('c')]],
  ['of another kind', async () => [await mark('a'), await uuid(), await mark('c')]],
])('C23 a step that is %s is found: the workflow is BLOCKED, and no further body runs', async (_, changed) => {
  const workflowId = await replayWith(original, changed);
  await waitUntil(async () => (await holdfast.handle(workflowId).status()) === 'BLOCKED', 'it is blocked');
  expect(bodies).toEqual([]);
  const details = await holdfast.admin.get(workflowId);
  expect(details.attention?.code).toBe('NONDETERMINISM');
  // The fix is deployed: nothing is lost.
  scenario = original;
  await holdfast.admin.resume(workflowId);
  expect(await holdfast.handle(workflowId).result()).toEqual(['a', 'b', 'c']);
});

test('C23 swallowing the error does not get the workflow past it', async () => {
  const workflowId = await replayWith(original, async () => {
    await mark('other').catch(() => undefined);
    await mark('more').catch(() => undefined);
    return 'finished anyway';
  });
  await waitUntil(async () => (await holdfast.handle(workflowId).status()) === 'BLOCKED', 'it is blocked');
  expect(bodies).toEqual([]);
});

test('C26 the winner of a race is the same on replay, and the loser is not run again', async () => {
  const race = async (): Promise<unknown> => {
    const winner = await Promise.race([
      runStep('slow', async () => {
        bodies.push('slow');
        await new Promise((resolve) => setTimeout(resolve, 30));
        return 'slow';
      }),
      runStep('fast', () => {
        bodies.push('fast');
        return Promise.resolve('fast');
      }),
    ]);
    return [winner, await mark('after')];
  };
  const workflowId = await replayWith(
    async () => {
      await race();
      await new Promise((resolve) => setTimeout(resolve, 60));
      await mark('later');
    },
    async () => {
      const result = await race();
      await mark('later');
      return result;
    },
  );
  expect(await holdfast.handle(workflowId).result()).toEqual(['fast', 'after']);
  expect(bodies).toEqual([]);
});

test('C26 the loser of a race that was recorded before the outcome does not keep a replay from ending', async () => {
  scenario = () => Promise.race([mark('first'), mark('second')]);
  const handle = await holdfast.start(run, { workflowId: 'both recorded' });
  expect(await handle.result()).toBe('first');
  // As if the process had died before the outcome was recorded, and after both of them were.
  await bed.sql.query(`
    INSERT INTO holdfast.step_result
    SELECT workflow_id, 1, 'second', kind, '"second"', NULL, 1, NULL, NULL, record_version + 1, epoch, nonce, started_at, completed_at
      FROM holdfast.step_result WHERE workflow_id = 'both recorded' AND seq = 0
    ON CONFLICT DO NOTHING;
    DELETE FROM holdfast.workflow_outcome WHERE workflow_id = 'both recorded';
    UPDATE holdfast.workflow_status SET status = 'ENQUEUED', completed_at = NULL, record_version = record_version + 1
     WHERE workflow_id = 'both recorded'`);
  await waitUntil(async () => (await handle.status()) !== 'ENQUEUED', 'it is claimed');
  await waitUntil(async () => (await handle.status()) !== 'PENDING', 'it has ended again');
  expect(await handle.status()).toBe('SUCCESS');
});

test('C26 races within races have the same winners on replay, whatever the timing, and what follows is numbered alike', async () => {
  const timed = (name: string, delays: Record<string, number>): Promise<string> =>
    runStep('runner', async () => {
      bodies.push(name);
      await new Promise((resolve) => setTimeout(resolve, delays[name] ?? 0));
      return name;
    });
  const races = (delays: Record<string, number>) => async (): Promise<unknown> => {
    const heat = async (first: string, second: string): Promise<string> => {
      const winner = await Promise.race([timed(first, delays), timed(second, delays)]);
      // One name for all: a wrong number would hand out another heat's value.
      return runStep('runner', () => Promise.resolve(`${winner}!`));
    };
    const seen: string[] = [];
    const heats = [heat('a', 'b'), heat('c', 'd'), Promise.any([heat('e', 'f'), heat('g', 'h')])];
    const winner = await Promise.race(heats.map((each) => each.then((name) => (seen.push(name), name))));
    const all = await Promise.all(heats);
    await sleep(60);
    return { winner, seen: [...seen], all };
  };
  let first: unknown;
  // At first the later ones are faster; on replay nothing takes any time.
  const workflowId = await replayWith(async () => {
    first = await races({ a: 40, b: 12, c: 30, d: 4, e: 20, f: 8, g: 6, h: 35 })();
  }, races({}));
  expect(await holdfast.handle(workflowId).result()).toEqual(first);
  expect(bodies).toEqual([]);
});

test('C27 nested parallel branches number their steps alike on replay, whoever came first', async () => {
  const branches = (delays: Record<string, number>) => async (): Promise<unknown> => {
    const branch = async (name: string): Promise<string[]> => {
      const results: string[] = [];
      for (const part of ['1', '2', '3']) {
        results.push(
          await runStep(`step`, async () => {
            bodies.push(name + part);
            await new Promise((resolve) => setTimeout(resolve, delays[name] ?? 0));
            return name + part;
          }),
        );
      }
      return results;
    };
    return Promise.all([branch('x'), branch('y'), branch('z')]);
  };
  // All steps have one name, so that a wrong number would go unnoticed and hand out another branch's value.
  const workflowId = await replayWith(branches({ x: 30, y: 0, z: 7 }), branches({}));
  expect(await holdfast.handle(workflowId).result()).toEqual([
    ['x1', 'x2', 'x3'],
    ['y1', 'y2', 'y3'],
    ['z1', 'z2', 'z3'],
  ]);
  expect(bodies).toEqual([]);
});

test('C21 a fork at any step reproduces the steps before it', async () => {
  const source = async (): Promise<unknown> => [
    ...(await Promise.all([mark('p'), mark('q'), mark('r')])),
    await mark('s'),
  ];
  scenario = source;
  const workflowId = `fork-source-${String(++count)}`;
  const handle = await holdfast.start(run, { workflowId });
  const expected = await handle.result();
  for (let fromStep = 0; fromStep <= 4; fromStep++) {
    bodies.length = 0;
    const fork = await holdfast.admin.fork(workflowId, { fromStep });
    expect(await holdfast.handle(fork.workflowId).result()).toEqual(expected);
    expect([...bodies].sort()).toEqual(['p', 'q', 'r', 's'].slice(fromStep));
  }
});

test('now, random and uuid are the same on replay', async () => {
  const values = async (): Promise<unknown> => [await now(), await random(), await uuid()];
  let first: unknown;
  const workflowId = await replayWith(async () => {
    first = await values();
  }, values);
  expect(await holdfast.handle(workflowId).result()).toEqual(first);
});

test('C20 a sleep keeps its end over a takeover', async () => {
  const begun = performance.now();
  const workflowId = `sleeper-${String(++count)}`;
  const asleep = gate();
  scenario = async () => {
    asleep.open();
    await sleep(1_000);
    return 'rested';
  };
  await holdfast.start(run, { workflowId });
  await asleep.opened;
  await waitUntil(async () => {
    const { rowCount } = await bed.sql.query('SELECT 1 FROM holdfast.step_intent WHERE workflow_id = $1', [workflowId]);
    return rowCount === 1;
  }, 'the sleep is on record');
  await new Promise((resolve) => setTimeout(resolve, 500));
  await holdfast.admin.cancel(workflowId);
  await holdfast.admin.resume(workflowId);
  expect(await holdfast.handle(workflowId).result()).toBe('rested');
  const took = performance.now() - begun;
  expect(took).toBeGreaterThanOrEqual(1_000);
  const { rows } = await bed.sql.query<{ early: boolean }>(
    `SELECT r.completed_at < i.wake_at AS early FROM holdfast.step_intent i
       JOIN holdfast.step_result r USING (workflow_id, seq) WHERE workflow_id = $1`,
    [workflowId],
  );
  expect(rows).toEqual([{ early: false }]);
});
