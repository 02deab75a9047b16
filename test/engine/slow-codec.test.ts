import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  defineUpdate,
  defineWorkflow,
  getEvent,
  receive,
  runStep,
  setEvent,
  type Holdfast,
  type PayloadCodec,
} from '../../src/index.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let turn = 0;
/** What each execution has seen. */
const orders: string[][] = [];

/** The earlier of two payloads takes longer, so that what follows the codec's pace comes in the wrong order. */
async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, turn++ % 2 === 0 ? 12 : 0));
}
const slow: PayloadCodec = {
  name: 'slow',
  encode: async (text) => {
    await pause();
    return Buffer.from(text).toString('base64');
  },
  decode: async (data) => {
    await pause();
    return Buffer.from(data, 'base64').toString();
  },
};

const refuse = defineUpdate<number>('refuse');
const echo = defineWorkflow('echo', (text: string) => Promise.resolve(text));
/** Branches of which each makes as many calls as the others: whose is which number depends on the order of their results. */
const branches = defineWorkflow('branches', async (): Promise<string[]> => {
  const seen: string[] = [];
  refuse.handle(() => {
    throw new Error('refused');
  });
  const branch = async (name: string, first: () => Promise<unknown>): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await first();
      seen.push(await runStep(name, () => Promise.resolve(name)));
    }
  };
  await setEvent('key', 'value');
  await Promise.all([
    branch('receives', () => receive('t')),
    branch('reads', () => getEvent('slow', 'key')),
    branch('has a child', () => echo('a text')),
    branch('steps', () => runStep('first', () => Promise.resolve('one'))),
  ]);
  orders.push([...seen]);
  await receive('end');
  return seen;
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [branches, echo], codecs: [slow], pollInterval: 20 });
});
afterAll(() => bed.close());

test('with a codec that takes its time, results reach the code in the order of the record, at first and at replay', async () => {
  const handle = await holdfast.start(branches, { workflowId: 'slow' });
  const updates = [1, 2, 3].map((n) => expect(handle.update(refuse, n)).rejects.toThrow('refused'));
  for (let round = 0; round < 3; round++) await handle.send('t', round);
  await Promise.all(updates);
  // setEvent, four branches of three rounds with two calls, and two calls for each update.
  const recorded = async (): Promise<number> =>
    (await bed.sql.query(`SELECT FROM holdfast.step_result WHERE workflow_id = 'slow'`)).rows.length;
  await waitUntil(async () => (await recorded()) === 31, 'all is recorded but the end');
  await waitUntil(() => orders.length === 1, 'the end is waited for');
  for (let time = 2; time <= 4; time++) {
    const other = await bed.launch({ workflows: [branches, echo], codecs: [slow], pollInterval: 20 });
    await bed.expireLease(holdfast.executorId);
    await waitUntil(async () => {
      expect((await holdfast.admin.get('slow')).attention).toBeNull();
      return orders.length === time;
    }, 'it is replayed');
    holdfast = other;
  }
  await handle.send('end', true);
  expect(await handle.result()).toEqual(orders[0]);
  expect(orders).toEqual([orders[0], orders[0], orders[0], orders[0]]);
});
