import { randomUUID } from 'node:crypto';

import { afterAll, beforeEach, expect, test } from 'vitest';

import {
  type Ask,
  cancel,
  checkpointOne,
  claim,
  complete,
  ProtocolBench,
  register,
  releaseWorkflow,
  type Session,
  start,
  type StartCall,
} from './support-protocol.js';

let bench: ProtocolBench;
let ask: Ask;
const benches: ProtocolBench[] = [];

beforeEach(async () => {
  bench = await ProtocolBench.open();
  benches.push(bench);
  ({ ask } = bench);
  await register(ask, 'owner');
  await register(ask, 'claimer');
});
afterAll(async () => {
  await Promise.all(benches.map((each) => each.close()));
});

/** Workflows that an owner had and gave back, so that they wait to be claimed. */
async function waiting(count: number, call: Partial<StartCall> = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const [id, token] = [`w-${randomUUID()}`, randomUUID()];
    await start(ask, { ...call, id, token });
    await releaseWorkflow(ask, { id, token, version: 1 }, 'ENQUEUED');
    ids.push(id);
  }
  return ids;
}

const idsOf = (rows: readonly { readonly workflow_id: string }[]): string[] =>
  rows.map((row) => row.workflow_id).sort();

async function sessions(count: number): Promise<Session[]> {
  return Promise.all(Array.from({ length: count }, () => bench.session()));
}

test('eight executors that claim at once claim each workflow exactly once', async () => {
  const ids = await waiting(120);
  await register(ask, 'dead', -1_000);
  const tokens = new Map<string, string>();
  for (let index = 0; index < 60; index++) {
    const [id, token] = [`dead-${index}`, randomUUID()];
    tokens.set(id, token);
    await start(ask, { id, token, executor: 'dead' });
  }
  const claimers = await sessions(8);
  const claims = await Promise.all(
    claimers.map(async (session, index) => {
      await register(session.ask, `claimer-${index}`);
      const mine: Awaited<ReturnType<typeof claim>> = [];
      for (;;) {
        const rows = await claim(session.ask, { executor: `claimer-${index}`, limit: 7 });
        mine.push(...rows);
        // SKIP LOCKED: nothing now may mean that others are claiming.
        if (rows.length === 0 && (await session.ask(`SELECT FROM @workflow_status WHERE epoch = 1`)).length === 0)
          return mine;
      }
    }),
  );
  const all = claims.flat();
  expect(idsOf(all)).toEqual([...ids, ...tokens.keys()].sort());
  expect(new Set(all.map(({ token }) => token)).size).toBe(180);
  expect(all.every(({ epoch }) => epoch === 2)).toBe(true);
  expect(await bench.violations()).toEqual([]);
});

test('a hundred wake-ups for one workflow are one claim', async () => {
  const [id] = await waiting(1);
  const claimers = await sessions(10);
  const rows = await Promise.all(
    claimers.map(async (session) => {
      const mine: unknown[] = [];
      for (let wakeUp = 0; wakeUp < 10; wakeUp++) mine.push(...(await claim(session.ask, { only: [id as string] })));
      return mine;
    }),
  );
  expect(rows.flat()).toHaveLength(1);
  expect(await ask('SELECT epoch::int, attempts FROM @workflow_status')).toEqual([{ epoch: 2, attempts: 2 }]);
});

test('C4 what a live executor owns is never taken', async () => {
  await start(ask, { id: 'owned' });
  expect(await claim(ask)).toEqual([]);
  expect(await claim(ask, { only: ['owned'] })).toEqual([]);
  // Nor what it has claimed from a dead one since.
  await register(ask, 'dead', -1_000);
  await start(ask, { id: 'left', executor: 'dead' });
  expect(idsOf(await claim(ask))).toEqual(['left']);
  await register(ask, 'second');
  expect(await claim(ask, { executor: 'second' })).toEqual([]);
});

test('C4 a sweep that waits behind a live claim of the same row does not take it as well', async () => {
  await register(ask, 'dead', -1_000);
  await register(ask, 'second');
  await start(ask, { id: 'left', executor: 'dead' });
  const [first, second] = (await sessions(2)) as [Session, Session];
  await first.ask('BEGIN');
  expect(await claim(first.ask)).toHaveLength(1);
  expect(await claim(second.ask, { executor: 'second' })).toEqual([]);
  await first.ask('COMMIT');
  expect(await claim(second.ask, { executor: 'second' })).toEqual([]);
});

test('C11 a claimer that was superseded, or whose lease is over, gets nothing', async () => {
  await waiting(1);
  await register(ask, 'claimer');
  expect(await claim(ask, { incarnation: 1 })).toEqual([]);
  await register(ask, 'lapsed', -1);
  expect(await claim(ask, { executor: 'lapsed' })).toEqual([]);
  expect(await claim(ask, { executor: 'nobody' })).toEqual([]);
  expect(await claim(ask, { incarnation: 2 })).toHaveLength(1);
});

test('an executor of the same ID loses its workflows to its successor', async () => {
  await start(ask, { id: 'owned' });
  const incarnation = await register(ask, 'owner');
  expect(await claim(ask, { executor: 'owner', incarnation })).toMatchObject([{ reason: 'recovered', epoch: 2 }]);
});

test('a renewal that meets a registration of the same ID under way learns that it was superseded', async () => {
  const [one, two] = (await sessions(2)) as [Session, Session];
  await one.ask('BEGIN');
  await register(one.ask, 'owner');
  const renewal = two.ask(`SELECT @heartbeat('owner', 1, 3600000) AS state`);
  await bench.untilSettledOrBlocked(two.pid, renewal);
  await one.ask('COMMIT');
  expect(await renewal).toEqual([{ state: 'superseded' }]);
  const [row] = await ask(
    `SELECT lease_until <= @clock() AS over FROM @executor WHERE executor_id = 'owner' AND incarnation = 1`,
  );
  expect(row).toEqual({ over: true });
});

test('two registrations of one ID at once get different incarnations, and the later one’s lease stands', async () => {
  const [one, two] = (await sessions(2)) as [Session, Session];
  await one.ask('BEGIN');
  const first = await register(one.ask, 'same');
  const second = register(two.ask, 'same');
  await bench.untilBlocked(two.pid);
  await one.ask('COMMIT');
  expect([first, await second]).toEqual([1, 2]);
});

test('a registration that meets a row of its ID which another one is just filling in gets the incarnation after that', async () => {
  const [one, two] = (await sessions(2)) as [Session, Session];
  await start(ask, { id: 'of-one-back', executor: 'owner' });
  await ask(`DELETE FROM @executor WHERE executor_id = 'owner'`);
  await one.ask('BEGIN');
  await register(one.ask, 'claimer');
  // The workflow that told of it has ended since: what fills the row in is not known here.
  await ask(`DELETE FROM @workflow_status`);
  const other = register(two.ask, 'owner');
  await bench.untilBlocked(two.pid);
  await one.ask('COMMIT');
  expect(await other).toBe(2);
});

test('registrations of different IDs do not wait for each other: two that did would each hold what the other one waits for', async () => {
  const [one, two] = (await sessions(2)) as [Session, Session];
  await start(ask, { id: 'of-owner' });
  await start(ask, { id: 'of-claimer', executor: 'claimer' });
  // One that both find to be cleared away.
  await register(ask, 'gone');
  await ask(`UPDATE @executor SET lease_until = @clock() - interval '8 days' WHERE executor_id = 'gone'`);
  await one.ask('BEGIN');
  await register(one.ask, 'owner');
  const other = register(two.ask, 'claimer');
  expect(await bench.untilSettledOrBlocked(two.pid, other)).toBe(false);
  await one.ask('COMMIT');
  expect(await other).toBe(2);
  expect(await ask(`SELECT FROM @executor WHERE executor_id = 'gone'`)).toEqual([]);
});

test('workflows of an executor whose row was cleared away are found again after the next registration', async () => {
  await ask(`DELETE FROM @executor WHERE executor_id = 'owner'`);
  await start(ask, { id: 'orphan' });
  await register(ask, 'another');
  expect(await claim(ask)).toMatchObject([{ workflow_id: 'orphan', reason: 'recovered' }]);
});

test('workflows of an executor that comes back while its row is being cleared away are found by the registration that meets that', async () => {
  const [one, two] = (await sessions(2)) as [Session, Session];
  await ask(`UPDATE @executor SET lease_until = @clock() - interval '8 days' WHERE executor_id = 'owner'`);
  await one.ask('BEGIN');
  await register(one.ask, 'another');
  await start(ask, { id: 'orphan' });
  const other = register(two.ask, 'a third');
  await bench.untilSettledOrBlocked(two.pid, other);
  await one.ask('COMMIT');
  await other;
  expect(await claim(ask)).toMatchObject([{ workflow_id: 'orphan', reason: 'recovered' }]);
});

test('an ID that comes back after days does not begin at its first incarnation again', async () => {
  await register(ask, 'laptop', -3 * 86_400_000);
  await register(ask, 'another');
  expect(await register(ask, 'laptop')).toBe(2);
  // Older rows are cleared away.
  await ask(`UPDATE @executor SET lease_until = @clock() - interval '8 days' WHERE executor_id = 'laptop'`);
  await register(ask, 'another');
  expect(await ask(`SELECT FROM @executor WHERE executor_id = 'laptop'`)).toEqual([]);
});

test('C1 C2 C17 the attempt limit ends in DEAD_LETTER with an outcome, judged only by an executor that knows the name', async () => {
  const [id] = (await waiting(1, { maxAttempts: 2 })) as [string];
  await start(ask, { id });
  const [second] = await claim(ask);
  expect(second).toMatchObject({ attempts: 2, epoch: 2 });
  await releaseWorkflow(ask, { id, token: second?.token ?? '', version: second?.record_version ?? 0 }, 'ENQUEUED');
  const before = await bench.wholeTables();
  expect(await claim(ask, { names: ['other'] })).toEqual([]);
  expect(await bench.wholeTables()).toEqual(before);
  expect(await claim(ask)).toEqual([]);
  expect(await ask('SELECT status, attention, owner_token FROM @workflow_status')).toEqual([
    { status: 'DEAD_LETTER', attention: 'DEAD_LETTER', owner_token: null },
  ]);
  expect(await ask('SELECT status, error, epoch::int FROM @workflow_outcome')).toEqual([
    { status: 'DEAD_LETTER', error: '"too many attempts"', epoch: 2 },
  ]);
  expect(await start(ask, { id })).toMatchObject({ answer: 'exists', status: 'DEAD_LETTER' });
  expect(await bench.violations()).toEqual([]);
});

test('C1 resume gives a dead letter a fresh budget, with which it can finish', async () => {
  const [id] = (await waiting(1, { maxAttempts: 1 })) as [string];
  expect(await claim(ask)).toEqual([]);
  await ask(`SELECT @resume_workflow($1, gen_random_uuid(), 'somebody', NULL)`, [id]);
  const [mine] = await claim(ask);
  expect(mine).toMatchObject({ attempts: 1, epoch: 2 });
  const owner = { id, token: mine?.token ?? '', version: mine?.record_version ?? 0 };
  expect(await complete(ask, owner)).toMatchObject({ answer: null });
  expect(await bench.violations()).toEqual([]);
});

test('C3 a decision to end a dead letter does not hit a row whose budget was renewed meanwhile', async () => {
  const [id] = (await waiting(1, { maxAttempts: 1 })) as [string];
  const [one, two] = (await sessions(2)) as [Session, Session];
  await one.ask('BEGIN');
  await one.ask(
    'UPDATE @workflow_status SET attempts = 0, record_version = record_version + 1 WHERE workflow_id = $1',
    [id],
  );
  expect(await claim(two.ask)).toEqual([]);
  await one.ask('COMMIT');
  expect(await claim(two.ask)).toMatchObject([{ attempts: 1 }]);
});

test('a recovered dead letter’s last ownership is closed as taken over', async () => {
  await register(ask, 'dead', -1_000);
  await start(ask, { id: 'left', executor: 'dead', maxAttempts: 1 });
  expect(await claim(ask)).toEqual([]);
  expect(await ask('SELECT ended_how FROM @workflow_ownership')).toEqual([{ ended_how: 'taken over' }]);
  expect(await bench.violations()).toEqual([]);
});

test('C31 a claim is bounded by its limit over all it may find together, dead letters included', async () => {
  await register(ask, 'dead', -1_000);
  for (let index = 0; index < 3; index++) await start(ask, { id: `dead-${index}`, executor: 'dead' });
  await waiting(3);
  await waiting(2, { maxAttempts: 1 });
  await ask(`UPDATE @workflow_status SET status = 'DELAYED', wake_at = @clock() - interval '1 s'
              WHERE workflow_id IN (SELECT workflow_id FROM @workflow_status WHERE status = 'ENQUEUED' LIMIT 1)`);
  for (let limit = 0; limit <= 4; limit++) {
    const before = await ask('SELECT FROM @workflow_status WHERE epoch > 1 OR completed_at IS NOT NULL');
    const rows = await claim(ask, { limit });
    const after = await ask('SELECT FROM @workflow_status WHERE epoch > 1 OR completed_at IS NOT NULL');
    expect(rows.length).toBeLessThanOrEqual(limit);
    expect(after.length - before.length).toBeLessThanOrEqual(limit);
  }
});

test('C17 C67 an executor claims only names that it knows, and only its own app version', async () => {
  const [other] = await waiting(1, { name: 'other' });
  const [old] = await waiting(1, { appVersion: 'v0' });
  const [mine] = await waiting(1);
  await register(ask, 'dead', -1_000);
  await start(ask, { id: 'left', executor: 'dead', name: 'other' });
  expect(idsOf(await claim(ask))).toEqual([mine]);
  expect(idsOf(await claim(ask, { names: ['other'] }))).toEqual([other, 'left'].sort());
  expect(idsOf(await claim(ask, { appVersion: 'v0' }))).toEqual([old]);
  expect(await claim(ask, { names: [] })).toEqual([]);
});

test('what is due is claimed, what is delayed is not, and neither is what is blocked, ended or cancelled', async () => {
  const ids = await waiting(4);
  const [due, delayed, blocked, cancelled] = ids as [string, string, string, string];
  const set = 'UPDATE @workflow_status SET status = $2, wake_at = @clock() + $3::interval WHERE workflow_id = $1';
  await ask(set, [due, 'SUSPENDED', '-1 s']);
  await ask(set, [delayed, 'DELAYED', '1 h']);
  await ask(set, [blocked, 'BLOCKED', '-1 h']);
  await cancel(ask, cancelled);
  expect(idsOf(await claim(ask))).toEqual([due]);
  expect(await claim(ask)).toEqual([]);
});

test('recovery fences the old execution, whose later writes change nothing', async () => {
  const token = randomUUID();
  await register(ask, 'dead', -1_000);
  await start(ask, { id: 'left', token, executor: 'dead' });
  const zombie = { id: 'left', token, version: 1 };
  expect(await checkpointOne(ask, zombie, { seq: 0 })).toMatchObject({ answer: null });
  const [mine] = await claim(ask);
  expect(mine).toMatchObject({ reason: 'recovered', record_version: 3, epoch: 2 });
  const before = await bench.wholeTables();
  for (const version of [2, 3]) {
    expect(await checkpointOne(ask, { ...zombie, version }, { seq: 1 })).toMatchObject({ answer: 'lost' });
    expect(await complete(ask, { ...zombie, version })).toMatchObject({ answer: 'lost' });
  }
  expect(await bench.wholeTables()).toEqual(before);
});
