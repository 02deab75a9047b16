import { afterAll, beforeAll, expect, test } from 'vitest';
import * as library from '../../src/index.js';
import type { Holdfast } from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';

const { defineSignal, defineUpdate, defineWorkflow, sleep } = library;

let bed: Bed;
let holdfast: Holdfast;
let client: library.HoldfastClient;
const unhandled: unknown[] = [];
const listener = (reason: unknown): void => {
  unhandled.push(reason);
};

const asleep = defineWorkflow('asleep', async (): Promise<void> => {
  await sleep('1h');
});
const one = defineWorkflow('one', async (): Promise<number> => {
  await sleep('1h');
  return 1;
});
const signal = defineSignal<number>('signal');
const update = defineUpdate<number>('update');

/** Every way in which a workflow can make a durable call. */
const calls: Record<string, () => unknown> = {
  sleep: () => sleep('1h'),
  now: () => library.now(),
  random: () => library.random(),
  uuid: () => library.uuid(),
  patched: () => library.patched('a'),
  deprecatePatch: () => library.deprecatePatch('b'),
  receive: () => library.receive('t'),
  send: () => library.send('asleep', 't', 1),
  setEvent: () => library.setEvent('key', 1),
  getEvent: () => library.getEvent('asleep', 'key'),
  writeStream: () => library.writeStream('stream', 1),
  closeStream: () => library.closeStream('stream'),
  runStep: () => library.runStep('endless', () => new Promise(() => undefined)),
  mapWorkflows: () => library.mapWorkflows(one, [undefined] as never[], { concurrency: 1 }),
  'a child': () => asleep(),
  'signal.receive': () => signal.receive(),
  'holdfast.start': () => holdfast.start(asleep, {}),
  'holdfast.enqueue': () => holdfast.enqueue(asleep, { queue: 'q' }),
  'holdfast.enqueueMany': () => holdfast.enqueueMany(asleep, { queue: 'q' }, [{ args: [] }]),
  'holdfast.send': () => holdfast.send('asleep', 't', 1),
  'holdfast.getEvent': () => holdfast.getEvent('asleep', 'key'),
  'client.send': () => client.send('asleep', 't', 1),
  'client.getEvent': () => client.getEvent('asleep', 'key'),
  'handle.result': () => holdfast.handle('asleep').result(),
  'handle.send': () => holdfast.handle('asleep').send('t', 1),
  'handle.getEvent': () => holdfast.handle('asleep').getEvent('key'),
  'handle.signal': () => holdfast.handle('asleep').signal(signal, 1),
  'handle.update': () => holdfast.handle('asleep').update(update, 1),
};
const careless = defineWorkflow('careless', async (name: string): Promise<string> => {
  await library.uuid();
  void calls[name]?.();
  return name;
});

beforeAll(async () => {
  process.on('unhandledRejection', listener);
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [careless, asleep, one], queues: [{ name: 'q' }] });
  client = await library.HoldfastClient.connect({ database: bed.database.url });
  await holdfast.start(asleep, { workflowId: 'asleep' });
});
afterAll(async () => {
  await client.close();
  await bed.close();
  process.off('unhandledRejection', listener);
});

test.each(Object.keys(calls))(
  'a call that nobody awaits does not end the process when its workflow ends: %s',
  async (name) => {
    expect(await (await holdfast.start(careless, {}, name)).result()).toBe(name);
    // What is rejected unhandled is told after the microtasks.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
  },
);

test('outside of workflows a rejection is the caller’s, as ever', async () => {
  await expect(library.receive('t')).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  await expect(sleep(1)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
});
