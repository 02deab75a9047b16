import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  closeStream,
  defineWorkflow,
  HoldfastClient,
  runStep,
  writeStream,
  type Holdfast,
  type ReadStreamOptions,
  type StreamEntry,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed, type Gate } from '../support/launch.js';
import { all, codeOf, first, values } from './support/read.js';

let bed: Bed;
let holdfast: Holdfast;
/** In place of another process: shares nothing with the writer but the database. */
let client: HoldfastClient;
/** The same, and gets no hints. */
let polling: HoldfastClient;

const gates = new Map<string, Gate>();
function gateOf(name: string): Gate {
  let found = gates.get(name);
  if (found === undefined) {
    found = gate();
    gates.set(name, found);
  }
  return found;
}

/** Writes as many entries, waits for its gate, and writes two more. */
const writer = defineWorkflow('writer', async (name: string, count: number, close: boolean) => {
  await runStep('begin', () => Promise.all(Array.from({ length: count }, (_, n) => writeStream('s', n))));
  await gateOf(name).opened;
  await writeStream('s', 'late 1');
  await writeStream('s', 'late 2');
  if (close) await closeStream('s');
  await gateOf(`${name} ends`).opened;
  if (name.includes('fails')) throw new Error('failed');
});
const reader = defineWorkflow('reader', async (workflowId: string, inStep: boolean) => {
  const read = (): Promise<unknown[]> => values(holdfast.readStream(workflowId, 's'));
  return inStep ? runStep('read', read) : read();
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [writer, reader] });
  const database = bed.database.url;
  client = await HoldfastClient.connect({ database, logger: silentLogger, pollInterval: 60_000 });
  polling = await HoldfastClient.connect({ database, logger: silentLogger, pollInterval: 20, notifications: false });
});
afterAll(async () => {
  await client.close();
  await polling.close();
  await bed.close();
});

async function start(name: string, count: number, close = false): Promise<void> {
  await holdfast.start(writer, { workflowId: name }, name, count, close);
}

/** Reads in the background, so that a test can look at what has come. */
function follow(stream: AsyncIterable<StreamEntry<unknown>>): { readonly got: unknown[]; readonly end: Promise<void> } {
  const got: unknown[] = [];
  const end = (async () => {
    for await (const { value } of stream) got.push(value);
  })();
  end.catch(() => undefined);
  return { got, end };
}

/** With and without notifications, from the process of the writer and from another one. */
const readers = ['the writer’s process', 'another process', 'another process that only polls'] as const;
function readerIn(where: (typeof readers)[number]): Holdfast | HoldfastClient {
  return { [readers[0]]: holdfast, [readers[1]]: client, [readers[2]]: polling }[where];
}

test.each(readers)('C47 a reader in %s follows, and ends soon after the workflow does, if nobody closes the stream', async (where) => {
  const name = `follow in ${where}`;
  await start(name, 3);
  const { got, end } = follow(readerIn(where).readStream(name, 's'));
  await waitUntil(() => got.length === 3, 'the reader has caught up');
  gateOf(name).open();
  await waitUntil(() => got.length === 5, 'the reader has got what came late');
  gateOf(`${name} ends`).open();
  await end;
  expect(got).toEqual([0, 1, 2, 'late 1', 'late 2']);
}); // prettier-ignore

test.each(readers)('a reader in %s ends when the stream is closed, while the workflow goes on', async (where) => {
  const name = `closed in ${where}`;
  await start(name, 1, true);
  const { got, end } = follow(readerIn(where).readStream(name, 's'));
  const beyond = follow(readerIn(where).readStream(name, 's', { from: 100 }));
  await waitUntil(() => got.length === 1, 'the reader has caught up');
  gateOf(name).open();
  await end;
  await beyond.end;
  expect([got, beyond.got]).toEqual([[0, 'late 1', 'late 2'], []]);
  expect(await holdfast.handle(name).status()).toBe('PENDING');
  gateOf(`${name} ends`).open();
});

test.each(readers)('C47 a reader in %s ends when the workflow is cancelled, fails, or had ended before', async (where) => {
  const cancelled = `cancelled in ${where}`;
  await start(cancelled, 2);
  const reading = follow(readerIn(where).readStream(cancelled, 's'));
  await waitUntil(() => reading.got.length === 2, 'the reader has caught up');
  await holdfast.admin.cancel(cancelled);
  await reading.end;
  const failed = `fails in ${where}`;
  await start(failed, 1);
  const other = follow(readerIn(where).readStream(failed, 's'));
  gateOf(failed).open();
  gateOf(`${failed} ends`).open();
  await other.end;
  expect(other.got).toHaveLength(3);
  expect(await values(readerIn(where).readStream(failed, 's'))).toHaveLength(3);
  expect(await values(readerIn(where).readStream(failed, 'never written'))).toEqual([]);
}); // prettier-ignore

test('reading is resumed at any offset, by another process too; the handle reads the same', async () => {
  await start('resumed', 10);
  gateOf('resumed').open();
  const begun = await first(4, holdfast.readStream('resumed', 's'));
  const offset = begun.at(-1)?.offset ?? -1;
  gateOf('resumed ends').open();
  const rest = await all(client.handle('resumed').readStream('s', { from: offset + 1 }));
  expect([...begun, ...rest].map((entry) => entry.offset)).toEqual(Array.from({ length: 12 }, (_, n) => n));
  expect(await values(client.readStream('resumed', 's', { from: 11 }))).toEqual(['late 2']);
  expect(await values(client.readStream('resumed', 's', { from: 12 }))).toEqual([]);
});

test('each loop over a reading begins anew, and several read side by side', async () => {
  await start('loops', 3);
  gateOf('loops').open();
  gateOf('loops ends').open();
  const stream = holdfast.readStream('loops', 's', { from: 2 });
  const expected = [2, 'late 1', 'late 2'];
  expect(await Promise.all([values(stream), values(stream)])).toEqual([expected, expected]);
  expect(await values(stream)).toEqual(expected);
});

test('the unknown workflow: not found, at the first entry; so it is when the workflow is deleted under the reader', async () => {
  for (const from of [holdfast, client, polling]) {
    expect(await codeOf(all(from.readStream('unknown', 's')))).toBe('WORKFLOW_NOT_FOUND');
  }
  await start('deleted', 2);
  const readings = [holdfast, client, polling].map((from) => follow(from.readStream('deleted', 's')));
  await waitUntil(() => readings.every(({ got }) => got.length === 2), 'the readers have caught up');
  await holdfast.admin.delete('deleted', { force: true });
  for (const { end } of readings) expect(await codeOf(end)).toBe('WORKFLOW_NOT_FOUND');
});

test('a signal ends the reading with its reason, before the first entry, while it waits, and between two entries', async () => {
  await start('signal', 2);
  const reason = { not: 'an error' };
  await expect(all(holdfast.readStream('signal', 's', { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
  const waiting = new AbortController();
  const { got, end } = follow(client.readStream('signal', 's', { signal: waiting.signal }));
  await waitUntil(() => got.length === 2, 'the reader has caught up');
  waiting.abort(reason);
  await expect(end).rejects.toBe(reason);
  const between = new AbortController();
  const read = async (): Promise<void> => {
    for await (const { offset } of holdfast.readStream('signal', 's', { signal: between.signal })) {
      expect(offset).toBe(0);
      between.abort(reason);
    }
  };
  await expect(read()).rejects.toBe(reason);
});

test('return() ends a reading that waits', async () => {
  await start('return', 1);
  const iterator = client.readStream('return', 's')[Symbol.asyncIterator]();
  expect(await iterator.next()).toMatchObject({ done: false, value: { offset: 0 } });
  const next = iterator.next();
  expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});

test('closing the Holdfast or the client ends readings with CLOSED, waiting ones and new ones', async () => {
  await start('closing', 1);
  const another = await bed.launch({ appVersion: 'closing', workflows: [writer] });
  const other = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
  const readings = [another, other].map((from) => follow(from.readStream('closing', 's')));
  await waitUntil(() => readings.every(({ got }) => got.length === 1), 'the readers have caught up');
  await another.close();
  await other.close();
  for (const { end } of readings) expect(await codeOf(end)).toBe('CLOSED');
  for (const from of [another, other]) expect(await codeOf(all(from.readStream('closing', 's')))).toBe('CLOSED');
});

test('a workflow cannot read a stream, since that differs from run to run; a step can', async () => {
  await start('read inside', 1);
  gateOf('read inside').open();
  gateOf('read inside ends').open();
  await holdfast.handle('read inside').result();
  expect(await codeOf((await holdfast.start(reader, {}, 'read inside', false)).result())).toBe('INVALID_ARGUMENT');
  expect(await (await holdfast.start(reader, {}, 'read inside', true)).result()).toEqual([0, 'late 1', 'late 2']);
});

test.each<[string, string, ReadStreamOptions]>([
  ['an offset below 0', 's', { from: -1 }],
  ['an offset that is no whole number', 's', { from: 0.5 }],
  ['an offset that is no number', 's', { from: '1' as unknown as number }],
  ['an option that does not exist', 's', { form: 1 } as ReadStreamOptions],
  ['a key that cannot be', '', {}],
])('%s is refused at the call', (_, key, options) => {
  for (const from of [holdfast, client]) {
    expect(() => from.readStream('x', key, options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  }
});
