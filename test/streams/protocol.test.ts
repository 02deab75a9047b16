import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  bump,
  cancel,
  ProtocolBench,
  register,
  start,
  streamBatch,
  streamGroups,
  type Ask,
  type Owner,
} from '../store/support-protocol.js';

// What the function does by itself, besides what is tested of all functions that write in test/store/protocol-failures.

let bench: ProtocolBench;
let ask: Ask;
beforeAll(async () => {
  bench = await ProtocolBench.open();
  ({ ask } = bench);
  await register(ask, 'owner');
});
afterEach(async () => {
  expect(await bench.violations()).toEqual([]);
});
afterAll(() => bench.close());

async function started(): Promise<Owner> {
  const owner = { id: `w-${randomUUID()}`, token: randomUUID(), version: 1 };
  await start(ask, owner);
  return owner;
}

async function versionOf({ id }: Owner): Promise<number> {
  const [row] = await ask<{ version: number }>(
    'SELECT record_version::int4 AS version FROM @workflow_status WHERE workflow_id = $1',
    [id],
  );
  return row?.version ?? 0;
}

async function entriesOf({ id }: Owner): Promise<string[]> {
  const rows = await ask<{ entry: string }>(
    `SELECT stream || entry_offset || coalesce('', value) AS entry FROM @stream_entry WHERE workflow_id = $1 ORDER BY stream, entry_offset`,
    [id],
  );
  return rows.map(({ entry }) => entry);
}

const answersOf = (answers: readonly { readonly answer: string | null }[]): (string | null)[] =>
  answers.map(({ answer }) => answer);

test('several entries of one workflow raise its version by their number; those that are not written raise nothing', async () => {
  const owner = await started();
  const answers = await streamBatch(ask, owner, [
    { seq: 0, kind: 'stream', stream: 'a' },
    { seq: 1, stream: 'b', place: 0 },
    { seq: 1, stream: 'b', place: 0 },
    { seq: 2, kind: 'stream-close', stream: 'a' },
    { seq: 1, stream: 'a' },
    { seq: 3, kind: 'stream', stream: 'a' },
    { seq: 4, kind: 'stream-close', stream: 'a' },
  ]);
  expect(answersOf(answers)).toEqual([null, null, 'there', null, 'closed', 'closed', null]);
  expect(await entriesOf(owner)).toEqual(['a0', 'a1', 'b0']);
  expect(await versionOf(owner)).toBe(5);
  const results = await ask(
    'SELECT seq, kind, record_version::int4 AS version FROM @step_result WHERE workflow_id = $1 ORDER BY seq',
    [owner.id],
  );
  expect(results).toEqual([
    { seq: 0, kind: 'stream', version: 2 },
    { seq: 2, kind: 'stream-close', version: 4 },
    { seq: 4, kind: 'stream-close', version: 5 },
  ]);
});

test('C9 a batch whose reply was lost is answered as it was, also what it did not write, and changes nothing', async () => {
  const owner = await started();
  await streamBatch(ask, owner, [{ seq: 1, stream: 'b', place: 0 }]);
  const again = { ...owner, version: 2 };
  const batch = [
    { seq: 1, stream: 'b', place: 0, nonce: randomUUID() },
    { seq: 1, stream: 'b', nonce: randomUUID() },
    { seq: 2, kind: 'stream-close', stream: 'a', nonce: randomUUID() },
    { seq: 3, kind: 'stream', stream: 'a', nonce: randomUUID() },
    { seq: 4, kind: 'stream-close', stream: 'a', nonce: randomUUID() },
  ] as const;
  const expected = ['there', null, null, 'closed', null];
  expect(answersOf(await streamBatch(ask, again, batch))).toEqual(expected);
  const before = await bench.wholeTables();
  expect(answersOf(await streamBatch(ask, again, batch))).toEqual(expected);
  await bump(ask, owner.id);
  expect(answersOf(await streamBatch(ask, again, batch))).toEqual(expected);
  await ask('UPDATE @workflow_status SET record_version = record_version - 1 WHERE workflow_id = $1', [owner.id]);
  expect((await bench.wholeTables())['stream_entry']).toEqual(before['stream_entry']);
});

test('owner, zombie and others in one batch: each is judged by its own token', async () => {
  const [owner, gone, other] = [await started(), await started(), await started()];
  await cancel(ask, gone.id);
  const zombie = { ...owner, token: randomUUID() };
  const answers = await streamGroups(ask, [
    { who: gone, entries: [{ seq: 0 }] },
    { who: zombie, entries: [{ seq: 0 }, { seq: 0 }] },
    { who: owner, entries: [{ seq: 0 }, { seq: 0 }] },
    { who: other, entries: [{ seq: 0 }] },
  ]);
  expect(answersOf(answers)).toEqual(['lost', 'lost', 'lost', null, null, null]);
  expect(await entriesOf(owner)).toEqual(['s0', 's1']);
  expect(await entriesOf(gone)).toEqual([]);
});

test('C46 two transactions that write to one stream at the same time: one is told that the row is locked, and follows', async () => {
  const owner = await started();
  const session = await bench.session();
  await session.ask('BEGIN');
  expect(answersOf(await streamBatch(session.ask, owner, [{ seq: 0 }]))).toEqual([null]);
  expect(answersOf(await streamBatch(ask, owner, [{ seq: 1 }]))).toEqual(['locked']);
  await session.ask('COMMIT');
  expect(answersOf(await streamBatch(ask, owner, [{ seq: 1 }]))).toEqual(['conflict']);
  expect(answersOf(await streamBatch(ask, { ...owner, version: 2 }, [{ seq: 1 }]))).toEqual([null]);
  expect(await entriesOf(owner)).toEqual(['s0', 's1']);
  await session.end();
});

test('a page ends at its number of entries or bytes, has one entry at least, and says whether there is more', async () => {
  const owner = await started();
  await streamBatch(ask, owner, [{ seq: 0 }, { seq: 0 }, { seq: 0 }]);
  const page = async (from: number, limit: number, bytes: number): Promise<unknown[]> => {
    const rows = await ask<{ at: string | null; more: boolean; over: boolean }>(
      'SELECT entry_offset AS at, has_more AS more, is_over AS over FROM @read_stream($1, $2, $3, NULL, $4, $5)',
      [owner.id, 's', from, limit, bytes],
    );
    return rows.map(({ at, more, over }) => [at === null ? null : Number(at), more, over]);
  };
  expect(await page(0, 2, 1_000)).toEqual([[0, true, false], [1, true, false]]);
  expect(await page(1, 2, 1_000)).toEqual([[1, true, false], [2, false, false]]);
  expect(await page(0, 9, 15)).toEqual([[0, true, false], [1, true, false]]);
  expect(await page(0, 9, 1)).toEqual([[0, true, false]]);
  expect(await page(3, 9, 1)).toEqual([[null, false, false]]);
  await streamBatch(ask, { ...owner, version: 4 }, [{ seq: 1, kind: 'stream-close' }]);
  expect(await page(2, 9, 1)).toEqual([[2, false, true]]);
  expect(await page(7, 9, 1)).toEqual([[null, false, true]]);
}); // prettier-ignore
