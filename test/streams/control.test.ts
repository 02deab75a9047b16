import { afterAll, beforeAll, expect, test } from 'vitest';
import { closeStream, continueAsNew, defineWorkflow, runStep, writeStream, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed, type Gate } from '../support/launch.js';
import { all, codeOf, first, values } from './support/read.js';

let bed: Bed;
let holdfast: Holdfast;

const gates = new Map<string, Gate>();
function gateOf(name: string): Gate {
  let found = gates.get(name);
  if (found === undefined) {
    found = gate();
    gates.set(name, found);
  }
  return found;
}
/** Grows with every run of a body, so that it shows which run wrote an entry. */
const runs = new Map<string, number>();
function runOf(name: string): number {
  const run = (runs.get(name) ?? 0) + 1;
  runs.set(name, run);
  return run;
}

/** Calls 0 to 4: an entry of its own, a step that writes two, another entry, another step, the end of the stream. */
const five = defineWorkflow('five', async (name: string) => {
  await writeStream('s', 'call 0');
  await runStep('one', async () => {
    const run = runOf(`${name} one`);
    await writeStream('s', `step 1 run ${String(run)} a`);
    await writeStream('s', `step 1 run ${String(run)} b`);
  });
  await writeStream('s', 'call 2');
  await writeStream('t', 'call 3');
  await closeStream('s');
});
/** Two steps write at the same time; one of them waits in the middle. */
const interleaved = defineWorkflow('interleaved', async (name: string) => {
  await Promise.all([
    runStep('slow', async () => {
      const run = String(runOf(`${name} slow`));
      await writeStream('s', `slow ${run} begins`);
      gateOf(`${name} slow has begun`).open();
      await gateOf(`${name} slow goes on`).opened;
      await writeStream('s', `slow ${run} ends`);
    }),
    runStep('quick', async () => {
      await gateOf(`${name} slow has begun`).opened;
      await writeStream('s', 'quick');
    }),
  ]);
});

/** Two runs, each of which writes in a step. */
const twice = defineWorkflow('twice', async (run: number): Promise<void> => {
  await runStep('write', async () => {
    const execution = String(runOf(`twice run ${String(run)}`));
    await writeStream('s', `run ${String(run)} ${execution}`, { oncePerStep: true });
  });
  if (run === 1) return continueAsNew(twice, 2);
  await writeStream('s', 'end');
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [five, interleaved, twice] });
});
afterAll(() => bed.close());

async function runFive(name: string): Promise<void> {
  await (await holdfast.start(five, { workflowId: name }, name)).result();
}

async function stored(workflowId: string): Promise<unknown[]> {
  const { rows } = await bed.sql.query<Record<string, unknown>>(
    `SELECT stream || entry_offset || ' ' || coalesce(value, 'closed') || ' by ' || seq AS entry
       FROM holdfast.stream_entry WHERE workflow_id = $1 ORDER BY stream, entry_offset`,
    [workflowId],
  );
  return rows.map(({ entry }) => entry);
}

const WHOLE = ['call 0', 'step 1 run 1 a', 'step 1 run 1 b', 'call 2'];

test.each([
  [0, [], []],
  [1, ['s0 "call 0" by 0'], WHOLE.slice(0, 1)],
  [2, ['s0 "call 0" by 0', 's1 "step 1 run 1 a" by 1', 's2 "step 1 run 1 b" by 1'], WHOLE.slice(0, 3)],
  [5, undefined, WHOLE],
])('C68 a fork before step %i has the streams as of that step; the original is untouched', async (step, copied, begins) => {
  const source = `forked at ${String(step)}`;
  const fork = `fork at ${String(step)}`;
  await runFive(source);
  const before = await stored(source);
  // An app version that nobody runs: the fork stays as it was made.
  await holdfast.admin.fork(source, { fromStep: step, workflowId: fork, appVersion: 'nobody' });
  expect(await stored(fork)).toEqual(copied ?? before);
  expect(await stored(source)).toEqual(before);
  await bed.sql.query(`UPDATE holdfast.workflow_status SET app_version = '' WHERE workflow_id = $1`, [fork]);
  const entries = await all(holdfast.readStream<string>(fork, 's'));
  expect(entries.map(({ offset }) => offset)).toEqual([0, 1, 2, 3]);
  expect(entries.slice(0, begins.length).map(({ value, epoch }) => [value, epoch])).toEqual(
    begins.map((value) => [value, 0]),
  );
  expect(await stored(source)).toEqual(before);
}); // prettier-ignore

test('C68 retrying a fork whose reply was lost copies streams once', async () => {
  await runFive('retried fork');
  const nonce = '00000000-0000-4000-8000-000000000068';
  const fork = () =>
    bed.sql.query<{ result: string }>(
      `SELECT result FROM holdfast.fork_workflow('retried fork', $1, 'me', NULL, 3, 'once', 'nobody')`,
      [nonce],
    );
  expect((await fork()).rows).toEqual([{ result: 'done' }]);
  expect((await fork()).rows).toEqual([{ result: 'done' }]);
  expect(await stored('once')).toHaveLength(4);
});

test('C69 rewind takes back what the removed steps wrote, opens the stream again, and the new run writes on', async () => {
  await runFive('rewound');
  await holdfast.admin.rewind('rewound', { toStep: 1 });
  await holdfast.handle('rewound').result();
  expect(await values(holdfast.readStream('rewound', 's'))).toEqual([
    'call 0',
    'step 1 run 2 a',
    'step 1 run 2 b',
    'call 2',
  ]);
  expect(await values(holdfast.readStream('rewound', 't'))).toEqual(['call 3']);
});

test('C69 rewind to the end of the record takes nothing back', async () => {
  await runFive('to the end');
  const before = await stored('to the end');
  await holdfast.admin.rewind('to the end', { toStep: 5 });
  await holdfast.handle('to the end').result();
  expect(await stored('to the end')).toEqual(before);
});

test('C69 what steps without a result had written goes too, and what is left moves together', async () => {
  const name = 'no gap';
  await holdfast.start(interleaved, { workflowId: name }, name);
  await waitUntil(async () => (await stored(name)).length === 2, 'both have written');
  await waitUntil(
    async () => (await bed.sql.query(`SELECT FROM holdfast.step_result WHERE workflow_id = $1`, [name])).rowCount === 1,
    'the quick step is recorded',
  );
  expect(await stored(name)).toEqual(['s0 "slow 1 begins" by 0', 's1 "quick" by 1']);
  await bed.sql.query(`SELECT holdfast.rewind_workflow($1, gen_random_uuid(), 'me', NULL, 2, '"x"')`, [name]);
  gateOf(`${name} slow goes on`).open();
  await holdfast.handle(name).result();
  expect(await stored(name)).toEqual(['s0 "quick" by 1', 's1 "slow 2 begins" by 0', 's2 "slow 2 ends" by 0']);
});

test('C68 a fork of running, parallel steps copies what is on record, without a gap', async () => {
  const name = 'forked while running';
  await holdfast.start(interleaved, { workflowId: name }, name);
  await waitUntil(
    async () => (await bed.sql.query(`SELECT FROM holdfast.step_result WHERE workflow_id = $1`, [name])).rowCount === 1,
    'the quick step is recorded',
  );
  await holdfast.admin.fork(name, { fromStep: 2, workflowId: `${name}, fork`, appVersion: 'nobody' });
  expect(await stored(`${name}, fork`)).toEqual(['s0 "quick" by 1']);
  gateOf(`${name} slow goes on`).open();
  await holdfast.handle(name).result();
});

test('C69 a reader that has got what a rewind takes back is told so; one that has not goes on', async () => {
  const name = 'read and rewound';
  await holdfast.start(interleaved, { workflowId: name }, name);
  const ahead = holdfast.readStream(name, 's')[Symbol.asyncIterator]();
  expect((await ahead.next()).value).toMatchObject({ offset: 0, value: 'slow 1 begins' });
  expect((await ahead.next()).value).toMatchObject({ offset: 1, value: 'quick' });
  // Awaited below: it can be told before the rewind's own reply arrives.
  const told = expect(ahead.next()).rejects.toMatchObject({ code: 'STREAM_REWRITTEN', offset: 2 });
  const behind = values(holdfast.readStream(name, 's', { from: 2 }));
  await bed.sql.query(`SELECT holdfast.rewind_workflow($1, gen_random_uuid(), 'me', NULL, 0, '"x"')`, [name]);
  await told;
  gateOf(`${name} slow goes on`).open();
  await holdfast.handle(name).result();
  expect(await behind).toEqual((await values(holdfast.readStream(name, 's'))).slice(2));
});

test('streams go on over continue-as-new, and a rewind or fork keeps what earlier runs wrote', async () => {
  await (await holdfast.start(twice, { workflowId: 'twice' }, 1)).result();
  expect(await values(holdfast.readStream('twice', 's'))).toEqual(['run 1 1', 'run 2 1', 'end']);
  const firstStep = (await holdfast.admin.get('twice')).firstStep;
  const fork = await holdfast.admin.fork('twice', { fromStep: firstStep });
  await holdfast.handle(fork.workflowId).result();
  expect(await values(holdfast.readStream(fork.workflowId, 's'))).toEqual(['run 1 1', 'run 2 2', 'end']);
  await holdfast.admin.rewind('twice', { toStep: firstStep });
  await holdfast.handle('twice').result();
  expect(await values(holdfast.readStream('twice', 's'))).toEqual(['run 1 1', 'run 2 3', 'end']);
});

test('C71 deleting removes the streams, and a workflow that takes the ID begins its own at offset 0', async () => {
  await runFive('deleted');
  await holdfast.admin.delete('deleted');
  expect(await stored('deleted')).toEqual([]);
  expect(await codeOf(all(holdfast.readStream('deleted', 's')))).toBe('WORKFLOW_NOT_FOUND');
  await runFive('deleted');
  const [entry] = await first(1, holdfast.readStream('deleted', 's'));
  expect(entry).toMatchObject({ offset: 0, value: 'call 0', epoch: 1 });
});

test('a cancelled workflow keeps its streams, and writes on when it is resumed', async () => {
  const name = 'resumed';
  await holdfast.start(interleaved, { workflowId: name }, name);
  await waitUntil(
    async () => (await bed.sql.query(`SELECT FROM holdfast.step_result WHERE workflow_id = $1`, [name])).rowCount === 1,
    'the quick step is recorded',
  );
  await holdfast.admin.cancel(name);
  expect(await values(holdfast.readStream(name, 's'))).toEqual(['slow 1 begins', 'quick']);
  await holdfast.admin.resume(name);
  gateOf(`${name} slow goes on`).open();
  await holdfast.handle(name).result();
  expect(await values(holdfast.readStream(name, 's', { from: 2 }))).toEqual(['slow 2 begins', 'slow 2 ends']);
});
