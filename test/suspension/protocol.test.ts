import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { complete, ProtocolBench, start, type Ask, type Row } from '../store/support-protocol.js';

let bench: ProtocolBench;

beforeAll(async () => {
  bench = await ProtocolBench.open();
});
afterAll(async () => {
  await bench.close();
});

interface Owned {
  readonly id: string;
  readonly token: string;
}

async function started(): Promise<Owned> {
  const owned = { id: `w-${randomUUID()}`, token: randomUUID() };
  await start(bench.ask, { ...owned, nonce: randomUUID() });
  return owned;
}

/** Suspends it, waiting for a message, and for the outcomes of the others. */
async function suspend(
  ask: Ask,
  { id, token }: Owned,
  targets: readonly string[] = [],
  { version = 1, nonce = randomUUID() } = {},
): Promise<Row | undefined> {
  const waits = [{ kind: 'message', topic: 'news' }, ...targets.map((workflowId) => ({ kind: 'outcome', workflowId }))];
  const [row] = await ask('SELECT answer, found_status FROM @suspend_workflow($1, $2::uuid, $3, $4::uuid, $5::jsonb)', [
    id,
    token,
    version,
    nonce,
    JSON.stringify(waits),
  ]);
  return row;
}

async function drain(ask: Ask): Promise<number> {
  const [row] = await ask<{ dealt: number }>('SELECT @drain_wakeups(1000) AS dealt');
  return row?.dealt ?? -1;
}

async function statusOf(id: string): Promise<Row | undefined> {
  const [row] = await bench.ask(
    'SELECT status, owner_token IS NULL AS free, wake_at <= @clock() AS due FROM @workflow_status WHERE workflow_id = $1',
    [id],
  );
  return row;
}

const SUSPENDED = { status: 'SUSPENDED', free: true, due: null };
const DUE = { status: 'SUSPENDED', free: true, due: true };

test('an execution that no longer owns the workflow, or saw another version, suspends nothing', async () => {
  const owned = await started();
  expect(await suspend(bench.ask, { ...owned, token: randomUUID() })).toMatchObject({ answer: 'lost' });
  expect(await suspend(bench.ask, owned, [], { version: 7 })).toMatchObject({ answer: 'conflict' });
  expect(await statusOf(owned.id)).toMatchObject({ status: 'PENDING' });
});

test('a suspension whose reply was lost is recognised by its nonce (C9)', async () => {
  const owned = await started();
  const nonce = randomUUID();
  expect(await suspend(bench.ask, owned, [], { nonce })).toMatchObject({ answer: null });
  expect(await suspend(bench.ask, owned, [], { nonce })).toMatchObject({ answer: null });
  expect(await suspend(bench.ask, owned)).toMatchObject({ answer: 'lost' });
});

test('an outcome that is there already keeps its waiter from being suspended', async () => {
  const [waiter, target] = [await started(), await started()];
  await complete(bench.ask, { ...target, version: 1, nonce: randomUUID() });
  expect(await suspend(bench.ask, waiter, [target.id])).toMatchObject({ answer: 'due' });
  expect(await statusOf(waiter.id)).toMatchObject({ status: 'PENDING' });
});

test('an outcome that is being written keeps its waiter from being suspended (C43)', async () => {
  const [waiter, target, session] = [await started(), await started(), await bench.session()];
  await session.ask('BEGIN');
  await complete(session.ask, { ...target, version: 1, nonce: randomUUID() });
  expect(await suspend(bench.ask, waiter, [target.id])).toMatchObject({ answer: 'busy' });
  await session.ask('COMMIT');
  expect(await suspend(bench.ask, waiter, [target.id])).toMatchObject({ answer: 'due' });
  await session.end();
});

test('an outcome that meets a suspension under way comes after it, and wakes its waiter (C43)', async () => {
  const [waiter, target, session] = [await started(), await started(), await bench.session()];
  await session.ask('BEGIN');
  expect(await suspend(session.ask, waiter, [target.id])).toMatchObject({ answer: null });
  const end = { ...target, version: 1, nonce: randomUUID() };
  expect(await complete(bench.ask, end)).toMatchObject({ answer: 'locked' });
  await session.ask('COMMIT');
  await complete(bench.ask, end);
  expect(await statusOf(waiter.id)).toEqual(SUSPENDED);
  expect(await drain(bench.ask)).toBe(1);
  expect(await statusOf(waiter.id)).toEqual(DUE);
  await session.end();
});

test('a wake-up that is committed while its workflow is being suspended stays until somebody has looked (C43)', async () => {
  const [waiter, session] = [await started(), await bench.session()];
  await session.ask('BEGIN');
  expect(await suspend(session.ask, waiter)).toMatchObject({ answer: null });
  // Sees the workflow as running still, and cannot lock it.
  await bench.ask('SELECT @wake_up(ARRAY[$1])', [waiter.id]);
  expect(await drain(bench.ask)).toBe(0);
  await session.ask('COMMIT');
  expect(await drain(bench.ask)).toBe(1);
  expect(await statusOf(waiter.id)).toEqual(DUE);
  expect(await bench.ask('SELECT FROM @wakeup')).toHaveLength(0);
  await session.end();
});

test('a wake-up in a transaction that takes long locks nobody, and wakes when it commits', async () => {
  const [waiter, session] = [await started(), await bench.session()];
  await session.ask('BEGIN');
  await session.ask('SELECT @wake_up(ARRAY[$1])', [waiter.id]);
  expect(await suspend(bench.ask, waiter)).toMatchObject({ answer: null });
  expect(await drain(bench.ask)).toBe(0);
  await session.ask('COMMIT');
  expect(await drain(bench.ask)).toBe(1);
  expect(await statusOf(waiter.id)).toEqual(DUE);
  await session.end();
});

test('two workflows that wait for each other are both suspended, or asked to try again', async () => {
  const [one, other, session] = [await started(), await started(), await bench.session()];
  await session.ask('BEGIN');
  expect(await suspend(session.ask, one, [other.id])).toMatchObject({ answer: null });
  expect(['locked', 'busy']).toContain((await suspend(bench.ask, other, [one.id]))?.['answer']);
  await session.ask('COMMIT');
  expect(await suspend(bench.ask, other, [one.id])).toMatchObject({ answer: null });
  await session.end();
});

test('a wake-up of a workflow that has ended or is gone is removed', async () => {
  const owned = await started();
  await complete(bench.ask, { ...owned, version: 1, nonce: randomUUID() });
  await bench.ask(`SELECT @wake_up(ARRAY[$1, 'never was'])`, [owned.id]);
  expect(await drain(bench.ask)).toBe(2);
  expect(await bench.ask('SELECT FROM @wakeup')).toHaveLength(0);
});

test('a workflow that is asked about its state is not suspended while its asker waits', async () => {
  const owned = await started();
  const question = randomUUID();
  await bench.ask(`SELECT @ask_query($1, $2::uuid, 'state', '[]', 3600000)`, [owned.id, question]);
  expect(await suspend(bench.ask, owned)).toMatchObject({ answer: 'due' });
  await bench.ask(`SELECT @answer_query($1, $2::uuid, '1', NULL)`, [owned.id, question]);
  await bench.ask(`SELECT @ask_query($1, $2::uuid, 'state', '[]', 0)`, [owned.id, randomUUID()]);
  expect(await suspend(bench.ask, owned), 'one is answered, for the other nobody waits').toMatchObject({
    answer: null,
  });
  expect(await statusOf(owned.id)).toEqual(SUSPENDED);
});

test('wake-ups of workflows that are locked for long, however many, do not keep the others asleep', async () => {
  const [held, heldToo, waiter, session] = [await started(), await started(), await started(), await bench.session()];
  await suspend(bench.ask, waiter);
  await drain(bench.ask);
  await session.ask('BEGIN');
  await session.ask('SELECT FROM @workflow_status WHERE workflow_id = ANY ($1) FOR NO KEY UPDATE', [
    [held.id, heldToo.id],
  ]);
  for (const { id } of [held, heldToo]) {
    await bench.ask('SELECT @wake_up(ARRAY[$1]) FROM generate_series(1, 100)', [id]);
  }
  await bench.ask('SELECT @wake_up(ARRAY[$1])', [waiter.id]);
  const [row] = await bench.ask('SELECT @drain_wakeups(10) AS dealt');
  expect(row).toEqual({ dealt: 1 });
  expect(await statusOf(waiter.id)).toEqual(DUE);
  await session.ask('COMMIT');
  expect(await drain(bench.ask)).toBe(200);
  await session.end();
});
