import { afterAll, beforeAll, expect, test } from 'vitest';
import { closeStream, defineWorkflow, runStep, step, writeStream, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed, type Gate } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { all, codeOf, values } from './support/read.js';

let bed: Bed;
let proxy: PgProxy;
/** Its connections go through the proxy. */
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

/** Writes in every way; the numbers of its stream_batch statements are in the test. */
const story = defineWorkflow('story', async () => {
  await writeStream('s', 'call');
  const codes = await runStep('step', async () => {
    await writeStream('s', 'step 1');
    return Promise.all([
      codeOf(writeStream('s', 'step 2')),
      codeOf(writeStream('t', 'once', { oncePerStep: true })),
      codeOf(writeStream('s', 'step 3')),
    ]);
  });
  await closeStream('s');
  codes.push(await codeOf(writeStream('s', 'too late')));
  return codes;
});
const STATEMENTS = 5;

/** A step that goes on although its execution is no longer the owner. */
const stubborn = defineWorkflow('stubborn', async (name: string) => {
  await runStep('step', async () => {
    const run = gates.has(`${name} first run is in`) ? 'second' : 'first';
    gateOf(`${name} ${run} run is in`).open();
    await writeStream('s', `${run} plain`);
    await writeStream('once', `${run} a`, { oncePerStep: true });
    if (run === 'second') {
      await writeStream('once', 'second b', { oncePerStep: true });
      await gateOf(`${name} second run goes on`).opened;
      return;
    }
    gateOf(`${name} first run waits`).open();
    await gateOf(`${name} first run goes on`).opened;
    const { signal } = step();
    zombie.push(await codeOf(writeStream('s', 'zombie')), await codeOf(writeStream('once', 'zombie', { oncePerStep: true })));
    zombie.push(signal.aborted);
    gateOf(`${name} first run is over`).open();
  });
  await writeStream('s', 'end');
}); // prettier-ignore
const zombie: unknown[] = [];

beforeAll(async () => {
  bed = await createBed();
  proxy = await startPgProxyFor(bed.database.url);
  holdfast = await bed.launch({ workflows: [story, stubborn], database: proxy.connectionString(bed.database.url) });
});
afterAll(async () => {
  await bed.close();
  await proxy.close();
});

async function expectStory(workflowId: string): Promise<void> {
  const handle = await holdfast.start(story, { workflowId });
  expect(await handle.result()).toEqual(['none', 'none', 'none', 'STREAM_CLOSED']);
  const entries = await all(handle.readStream('s'));
  expect(entries.map(({ offset, value, epoch }) => [offset, value, epoch])).toEqual([
    [0, 'call', 1],
    [1, 'step 1', 1],
    [2, 'step 2', 1],
    [3, 'step 3', 1],
  ]);
  expect(await values(handle.readStream('t'))).toEqual(['once']);
}

const points = Array.from({ length: STATEMENTS }, (_, index) => index);

test.each(points)('C9 the reply to write %i is lost with a reset right after its COMMIT: each entry is there once', async (index) => {
  let seen = 0;
  const fault = proxy.arm({ do: 'drop-reply', reset: true }, ({ sql }) => sql.includes('stream_batch') && seen++ === index);
  await expectStory(`reply ${String(index)} lost`);
  expect(fault.hits).toBe(1);
}); // prettier-ignore

test.each(points)('C9 the connection is cut before the server gets write %i: each entry is there once', async (index) => {
  let seen = 0;
  const fault = proxy.arm({ do: 'cut-before' }, ({ sql }) => sql.includes('stream_batch') && seen++ === index);
  await expectStory(`before write ${String(index)}`);
  expect(fault.hits).toBe(1);
}); // prettier-ignore

test('C9 replies are lost again and again, while many write: each entry is there once', async () => {
  let seen = 0;
  const fault = proxy.arm({ do: 'drop-reply' }, ({ sql }) => sql.includes('stream_batch') && seen++ % 2 === 0, {
    times: 100,
  });
  await Promise.all(points.map((n) => expectStory(`many ${String(n)}`)));
  fault.disarm();
  expect(fault.hits).toBeGreaterThan(2);
});

test('a reader whose connection breaks goes on where it was', async () => {
  await (await holdfast.start(story, { workflowId: 'read through' })).result();
  const fault = proxy.arm({ do: 'drop-reply', reset: true }, /read_stream/);
  expect(await values(holdfast.readStream('read through', 's'))).toEqual(['call', 'step 1', 'step 2', 'step 3']);
  expect(fault.hits).toBe(1);
});

test('an entry that the database refuses fails alone; its neighbours in the batch are written', async () => {
  await bed.sql.query(`ALTER TABLE holdfast.stream_entry ADD CONSTRAINT no_poison CHECK (value <> '"poison"')`);
  const poisoned = defineWorkflow('poisoned', async () => {
    const codes = await Promise.all(['a', 'poison', 'b'].map((value) => codeOf(writeStream('s', value))));
    return runStep('step', async () => [
      ...codes,
      ...(await Promise.all(['c', 'poison', 'd'].map((value) => codeOf(writeStream('s', value))))),
    ]);
  });
  const own = await bed.launch({ appVersion: 'poisoned', workflows: [poisoned] });
  const handle = await own.start(poisoned, { workflowId: 'poisoned' });
  expect(await handle.result()).toEqual(['none', 'WRITE_REFUSED', 'none', 'none', 'WRITE_REFUSED', 'none']);
  expect((await values(handle.readStream<string>('s'))).sort()).toEqual(['a', 'b', 'c', 'd']);
  const { rows } = await bed.sql.query(
    `SELECT seq FROM holdfast.step_result WHERE workflow_id = 'poisoned' AND error IS NOT NULL`,
  );
  expect(rows).toEqual([{ seq: 1 }]);
  await bed.sql.query('ALTER TABLE holdfast.stream_entry DROP CONSTRAINT no_poison');
});

test('C46 after a takeover the zombie writes nothing, and what its step wrote oncePerStep is not doubled', async () => {
  const name = 'taken over';
  await holdfast.start(stubborn, { workflowId: name }, name);
  await gateOf(`${name} first run waits`).opened;
  const heir = await bed.launch({ workflows: [stubborn], executorId: 'heir' });
  await waitUntil(async () => {
    await bed.expireLease(holdfast.executorId);
    const { rows } = await bed.sql.query<{ epoch: number }>(
      'SELECT epoch::int FROM holdfast.workflow_status WHERE workflow_id = $1',
      [name],
    );
    return rows[0]?.epoch === 2;
  }, 'the heir owns it');
  await gateOf(`${name} second run is in`).opened;
  gateOf(`${name} first run goes on`).open();
  await gateOf(`${name} first run is over`).opened;
  expect(zombie).toEqual(['OWNERSHIP_LOST', 'OWNERSHIP_LOST', true]);
  gateOf(`${name} second run goes on`).open();
  await heir.handle(name).result();
  expect((await all(heir.readStream(name, 's'))).map(({ value, epoch }) => [value, epoch])).toEqual([
    ['first plain', 1],
    ['second plain', 2],
    ['end', 2],
  ]);
  expect(await values(heir.readStream(name, 'once'))).toEqual(['first a', 'second b']);
});
