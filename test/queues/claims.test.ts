import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { complete, ProtocolBench, register, releaseWorkflow } from '../store/support-protocol.js';
import { pagesOf } from '../support/pages.js';
import { claimUntilQuiet, claimWork, define, fill } from './support/claims.js';

let bench: ProtocolBench;
beforeAll(async () => {
  bench = await ProtocolBench.open();
  await register(bench.ask, 'one');
  await register(bench.ask, 'two');
  await register(bench.ask, 'other');
});
afterEach(async () => {
  await bench.ask(
    'TRUNCATE @workflow_status, @workflow_input, @ended_ownership, @workflow_outcome, @queue, @queue_start',
  );
});
afterAll(() => bench.close());

test('C32 two executors that claim at the same moment stay within the limit: the second does not count before the first has taken', async () => {
  await define(bench.ask, 'q', { concurrency: 3 });
  await fill(bench.ask, { queue: 'q', count: 10 });
  const [first, second] = [await bench.session(), await bench.session()];
  await first.ask('BEGIN');
  expect((await claimWork(first.ask, { executor: 'one', limit: 2 })).ids).toEqual(['q-1', 'q-2']);
  const meanwhile = await claimWork(second.ask, { executor: 'two' });
  expect(meanwhile).toMatchObject({ ids: [], report: { limited: true, soon: true, againInMs: null } });
  await first.ask('COMMIT');
  expect((await claimWork(second.ask, { executor: 'two' })).ids).toEqual(['q-3']);
  expect(await claimWork(second.ask, { executor: 'two' })).toMatchObject({
    ids: [],
    report: { limited: true, soon: false },
  });
  await first.ask('BEGIN');
  await first.ask(`DELETE FROM @workflow_status WHERE status = 'PENDING'`);
  await claimWork(first.ask, { executor: 'one' });
  await first.ask('ROLLBACK');
  expect((await claimWork(second.ask, { executor: 'two' })).ids).toEqual([]);
  await first.end();
  await second.end();
});

test('C32 a claim that waited behind another one on the same workflows takes none of them twice', async () => {
  await define(bench.ask, 'q');
  await fill(bench.ask, { queue: 'q', count: 40, key: `'k' || n % 4` });
  const sessions = await Promise.all(Array.from({ length: 6 }, () => bench.session()));
  const claims = await Promise.all(
    sessions.map((session, index) => claimWork(session.ask, { executor: index % 2 === 0 ? 'one' : 'two', limit: 15 })),
  );
  const taken = claims.flatMap(({ ids }) => ids);
  expect(new Set(taken).size).toBe(taken.length);
  await Promise.all(sessions.map((session) => session.end()));
});

test('C38 what waits behind a full key is asked for when a slot gets free, and not all the time', async () => {
  await define(bench.ask, 'q', { key_concurrency: 1 });
  await fill(bench.ask, { queue: 'q', count: 5, key: `'k'` });
  expect((await claimWork(bench.ask)).ids).toEqual(['q-1']);
  expect(await claimWork(bench.ask)).toMatchObject({
    ids: [],
    report: { limited: true, soon: false, againInMs: null },
  });
});

test('C37 what a rate keeps back is asked for when the window lets it through', async () => {
  await define(bench.ask, 'q', { key_rate_limit: 2, key_rate_period_ms: 60_000 });
  await fill(bench.ask, { queue: 'q', count: 5, key: `'k'` });
  expect((await claimWork(bench.ask)).ids).toEqual(['q-1', 'q-2']);
  const { ids, report } = await claimWork(bench.ask);
  expect(ids).toEqual([]);
  expect(report?.soon).toBe(false);
  expect(report?.againInMs).toBeGreaterThan(50_000);
  expect(report?.againInMs).toBeLessThanOrEqual(60_001);
});

test.each([
  ['a name that it does not know', { name: 'newer' }],
  ['another app version', { status: 'PENDING' as const }],
])('C17 an executor does not read the backlog of %s to find what it can run behind it', async (_, other) => {
  // Whoever analyses the table meanwhile keeps what is dead from being removed.
  await bench.ask('ALTER TABLE @workflow_status SET (autovacuum_enabled = off)');
  await define(bench.ask, 'q');
  await fill(bench.ask, { queue: 'q', count: 20_000, id: `'other-' || n`, key: `'k'`, ...other });
  await bench.ask(
    `UPDATE @workflow_status SET status = 'ENQUEUED', owner_token = NULL, app_version = 'v0' WHERE status = 'PENDING'`,
  );
  await fill(bench.ask, { queue: 'q', count: 3, key: `'k'` });
  await bench.ask('VACUUM ANALYZE @workflow_status');
  const pages = await pagesOf(bench.ask, () => claimWork(bench.ask), { schema: bench.schema, end: 'ROLLBACK' });
  expect(pages).toBeLessThan(1_000);
  expect((await claimWork(bench.ask)).ids).toEqual(['q-1', 'q-2', 'q-3']);
});

test('a claim goes once through what has left the line since the oldest transaction began', async () => {
  await define(bench.ask, 'q');
  await fill(bench.ask, { queue: 'q', count: 20_010 });
  const reader = await bench.session();
  await reader.ask('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await reader.ask('SELECT FROM @workflow_status LIMIT 1');
  expect((await claimWork(bench.ask, { limit: 20_000 })).ids.length).toBe(20_000);
  // The least of three: a plan that happens to be made anew meanwhile looks at the ends of indexes.
  const pages: number[] = [];
  for (let time = 0; time < 3; time++) {
    const claimOne = async (): Promise<void> => {
      expect((await claimWork(bench.ask, { limit: 1 })).ids.length).toBe(1);
    };
    pages.push(await pagesOf(bench.ask, claimOne, { schema: bench.schema }));
  }
  await reader.ask('COMMIT');
  // They fill about 1,100 pages of the table and of the index.
  expect(Math.min(...pages)).toBeGreaterThan(1_000);
  expect(Math.min(...pages)).toBeLessThan(3_500);
});

test('within a key, workflows of several names and of several versions keep the order of their enqueuing', async () => {
  await define(bench.ask, 'q', { key_concurrency: 3 });
  await fill(bench.ask, { queue: 'q', count: 1, id: `'first'`, key: `'k'`, name: 'zeta' });
  await fill(bench.ask, { queue: 'q', count: 2, id: `'second-' || n`, key: `'k'`, name: 'alpha' });
  await fill(bench.ask, { queue: 'q', count: 1, id: `'third'`, key: `'k'`, name: 'zeta' });
  expect((await claimWork(bench.ask, { names: ['zeta', 'alpha'] })).ids.toSorted()).toEqual([
    'first',
    'second-1',
    'second-2',
  ]);
});

test('however many keys are held back, what waits behind them is found: other keys, and lower priorities', async () => {
  await define(bench.ask, 'q', { key_concurrency: 1 });
  await fill(bench.ask, { queue: 'q', count: 1_300, id: `'held-' || n`, key: `'k' || n`, status: 'PENDING' });
  await fill(bench.ask, { queue: 'q', count: 1_300, id: `'behind-' || n`, key: `'k' || n` });
  await fill(bench.ask, { queue: 'q', count: 1, id: `'last-key'`, key: `'z'` });
  await fill(bench.ask, { queue: 'q', count: 1, id: `'low'`, key: `'a'`, priority: 7 });
  const claims = await claimUntilQuiet(bench.ask, {}, 8);
  expect(claims.flat().toSorted()).toEqual(['last-key', 'low']);
});

test('a sweep over held-back keys does not keep what has just come from being found', async () => {
  await define(bench.ask, 'q', { key_concurrency: 1 });
  await fill(bench.ask, { queue: 'q', count: 700, id: `'held-' || n`, key: `'k' || n`, status: 'PENDING' });
  await fill(bench.ask, { queue: 'q', count: 700, id: `'behind-' || n`, key: `'k' || n` });
  const first = await claimWork(bench.ask);
  expect(first).toMatchObject({ ids: [], report: { soon: true } });
  await fill(bench.ask, { queue: 'q', count: 1, id: `'urgent'`, key: `'a'`, priority: -5 });
  const second = await claimWork(bench.ask, { turns: first.report?.turns });
  const third = await claimWork(bench.ask, { turns: second.report?.turns });
  expect([...second.ids, ...third.ids]).toEqual(['urgent']);
});

test('two thousand keys each get their turn before any gets a second one', async () => {
  await define(bench.ask, 'q');
  await fill(bench.ask, { queue: 'q', count: 4_000, key: `'k' || n % 2000` });
  const seen = new Set<string>();
  let turns: unknown;
  for (let claims = 0; claims < 20; claims++) {
    const { ids, report } = await claimWork(bench.ask, { turns });
    turns = report?.turns;
    for (const id of ids) seen.add(String(Number(id.slice(2)) % 2000));
  }
  expect(seen.size).toBe(2_000);
});

test.each([60, 100, 130])('with room for one workflow at a time, each of %i queues has its turn', async (queues) => {
  await bench.ask(
    `SELECT @define_queues((SELECT jsonb_agg(jsonb_build_object('name', 'q' || n)) FROM generate_series(1, $1::int) n), false)`,
    [queues],
  );
  await fill(bench.ask, { queue: 'q', count: queues * 3, id: `'w-' || n` });
  await bench.ask(`UPDATE @workflow_status SET queue = 'q' || (1 + substr(workflow_id, 3)::int % $1::int)`, [queues]);
  const seen = new Set<number>();
  let turns: unknown;
  for (let claims = 0; claims < queues; claims++) {
    const { ids, report } = await claimWork(bench.ask, { turns, limit: 1 });
    turns = report?.turns;
    for (const id of ids) seen.add(Number(id.slice(2)) % queues);
  }
  expect(seen.size).toBe(queues);
});

test('C31 a hundred full queues do not hide one that has room', async () => {
  await bench.ask(
    `SELECT @define_queues((SELECT jsonb_agg(jsonb_build_object('name', 'full' || n, 'concurrency', 1)) FROM generate_series(1, 120) n), false)`,
  );
  await fill(bench.ask, { queue: 'full1', count: 240, id: `'w-' || n` });
  await bench.ask(`UPDATE @workflow_status SET queue = 'full' || (1 + substr(workflow_id, 3)::int % 120)`);
  for (let claims = 0; claims < 3; claims++) await claimUntilQuiet(bench.ask, { executor: 'other' }, 5);
  await define(bench.ask, 'zz');
  await fill(bench.ask, { queue: 'zz', count: 1 });
  expect((await claimUntilQuiet(bench.ask, {}, 3)).flat()).toEqual(['zz-1']);
});

test('a workflow that is woken needs room in its executor, and what has none does not stand in the way of others', async () => {
  await define(bench.ask, 'q', { executor_concurrency: 2 });
  await define(bench.ask, 'free');
  await fill(bench.ask, { queue: 'q', count: 2, id: `'running-' || n`, status: 'PENDING', executor: 'one' });
  await fill(bench.ask, { queue: 'q', count: 5, id: `'asleep-' || n`, status: 'SUSPENDED' });
  await fill(bench.ask, { queue: 'free', count: 1, status: 'SUSPENDED' });
  const claimed = await claimWork(bench.ask, { limit: 3 });
  expect(claimed).toMatchObject({ ids: ['free-1'], report: { limited: true } });
  expect((await claimWork(bench.ask, { executor: 'two' })).ids).toHaveLength(2);
  await bench.ask(`DELETE FROM @workflow_status WHERE workflow_id = 'running-1'`);
  expect((await claimWork(bench.ask)).ids).toHaveLength(1);
  expect((await claimWork(bench.ask)).ids).toEqual([]);
});

test('waking needs no slot of the queue and counts for no rate: it has its slot', async () => {
  await define(bench.ask, 'q', { concurrency: 3, rate_limit: 1, rate_period_ms: 60_000 });
  await fill(bench.ask, { queue: 'q', count: 3, id: `'asleep-' || n`, status: 'SUSPENDED' });
  await fill(bench.ask, { queue: 'q', count: 2 });
  expect((await claimWork(bench.ask)).ids.toSorted()).toEqual(['asleep-1', 'asleep-2', 'asleep-3']);
  expect(await bench.ask('SELECT FROM @queue_start')).toEqual([]);
});

test('C37 recovery counts for the rates, of the queue and of the key, and waits for them', async () => {
  await define(bench.ask, 'q', {
    rate_limit: 3,
    rate_period_ms: 60_000,
    key_rate_limit: 2,
    key_rate_period_ms: 60_000,
    key_concurrency: 3,
  });
  await register(bench.ask, 'dead', -1);
  await fill(bench.ask, { queue: 'q', count: 6, key: `'k' || n % 2`, status: 'PENDING', executor: 'dead' });
  const { items, report } = await claimWork(bench.ask);
  expect(items.map(({ reason }) => reason)).toEqual(['recovered', 'recovered', 'recovered']);
  expect(report?.limited).toBe(true);
  const next = await claimWork(bench.ask, { executor: 'two' });
  expect(next.ids).toEqual([]);
  expect(next.report?.againInMs).toBeGreaterThan(50_000);
});

test('what waits in a queue that is gone is not limited, and not stuck', async () => {
  await fill(bench.ask, { queue: 'gone', count: 3, key: `'k'` });
  expect((await claimWork(bench.ask)).ids).toEqual(['gone-1', 'gone-2', 'gone-3']);
});

test('C67 the claim of an older library leaves queues alone', async () => {
  await define(bench.ask, 'q');
  await fill(bench.ask, { queue: 'q', count: 2, id: `'waits-' || n` });
  await fill(bench.ask, { queue: 'q', count: 2, id: `'asleep-' || n`, status: 'SUSPENDED' });
  await register(bench.ask, 'dead', -1);
  await fill(bench.ask, { queue: 'q', count: 2, id: `'left-' || n`, status: 'PENDING', executor: 'dead' });
  const rows = await bench.ask(
    `SELECT workflow_id FROM @claim_workflows('one', 1, 'v1', ARRAY['flow'], 100, NULL, '"too many"')`,
  );
  expect(rows).toEqual([]);
  expect((await claimWork(bench.ask)).ids).toHaveLength(6);
});

test('C32 C33 many claimers, deaths, give-backs and sleeps: no limit is exceeded at any moment, and nothing is lost or run twice', async () => {
  const limits = { concurrency: 9, executor_concurrency: 3, key_concurrency: 2 };
  const count = 240;
  await define(bench.ask, 'q', limits);
  await fill(bench.ask, { queue: 'q', count, key: `'k' || n % 7` });
  const held = new Map<string, { executor: string; key: string; version: number; token: string }>();
  const done: string[] = [];
  const excesses: string[] = [];
  const keyOf = (id: string): string => `k${String(Number(id.slice(2)) % 7)}`;
  const check = (): void => {
    const tally = (by: (entry: { executor: string; key: string }) => string): number => {
      const counts = new Map<string, number>();
      for (const entry of held.values()) counts.set(by(entry), (counts.get(by(entry)) ?? 0) + 1);
      return Math.max(0, ...counts.values());
    };
    if (held.size > limits.concurrency) excesses.push(`${String(held.size)} run`);
    if (tally(({ executor }) => executor) > limits.executor_concurrency) excesses.push('an executor runs too many');
    if (tally(({ key }) => key) > limits.key_concurrency) excesses.push('a key runs too many');
  };
  let random = 7;
  const chance = (): number => {
    random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
    return random / 2_147_483_648;
  };
  const actor = async (name: string): Promise<void> => {
    const session = await bench.session();
    const { ask } = session;
    let incarnation = await register(ask, name);
    let turns: unknown;
    while (done.length < count) {
      const { items, report } = await claimWork(ask, {
        executor: name,
        incarnation,
        limit: 1 + Math.floor(chance() * 4),
        turns,
      });
      turns = report?.turns;
      for (const { id, token, version } of items) {
        if (held.has(id)) excesses.push(`${id} runs twice`);
        held.set(id, { executor: name, key: keyOf(id), version, token });
      }
      check();
      const mine = [...held].filter(([, { executor }]) => executor === name);
      if (chance() < 0.04) {
        // Dies, and comes back as a newer incarnation.
        for (const [id] of mine) held.delete(id);
        await ask(`UPDATE @executor SET lease_until = @clock() - interval '1 s' WHERE executor_id = $1`, [name]);
        incarnation = await register(ask, name);
        continue;
      }
      for (const [id, { token, version }] of mine) {
        const what = chance();
        if (what < 0.3) continue;
        held.delete(id);
        if (what < 0.4) {
          await ask(
            `WITH mine AS MATERIALIZED (SELECT * FROM @workflow_status WHERE workflow_id = $1 FOR UPDATE),
                  ended AS (
               INSERT INTO @ended_ownership (workflow_id, epoch, executor_id, incarnation, reason, owned_at, ended_at, ended_how)
               SELECT workflow_id, epoch, executor_id, incarnation, owned_reason, owned_at, @clock(), 'suspended' FROM mine)
             UPDATE @workflow_status s
                SET status = 'SUSPENDED', owner_token = NULL, record_version = s.record_version + 1,
                    wake_at = @clock() + interval '3 ms', owned_at = NULL, owned_reason = NULL
               FROM mine m WHERE s.workflow_id = m.workflow_id`,
            [id],
          );
        } else if (what < 0.5) {
          const { answer } = await releaseWorkflow(ask, { id, token, version });
          if (answer !== null) held.set(id, { executor: name, key: keyOf(id), version, token });
        } else {
          const { answer } = await complete(ask, { id, token, version });
          if (answer === null) done.push(id);
          else held.set(id, { executor: name, key: keyOf(id), version, token });
          if (answer !== null && answer !== 'locked') excesses.push(`${id}: ${answer}`);
        }
      }
      const [row] = await ask<{ slots: number; own: number; key: number }>(
        `SELECT count(*)::int AS slots,
                coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM @workflow_status WHERE status = 'PENDING' GROUP BY executor_id, incarnation) g), 0)::int AS own,
                coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM @workflow_status WHERE status IN ('PENDING', 'SUSPENDED') GROUP BY partition_key) g), 0)::int AS key
           FROM @workflow_status WHERE status IN ('PENDING', 'SUSPENDED')`,
      );
      if (row === undefined || row.slots > 9 || row.own > 3 || row.key > 2)
        excesses.push(`on record: ${JSON.stringify(row)}`);
    }
    await session.end();
  };
  await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(actor));
  expect(excesses).toEqual([]);
  expect(new Set(done).size).toBe(count);
  expect(await bench.ask(`SELECT status, count(*)::int AS n FROM @workflow_status GROUP BY status`)).toEqual([
    { status: 'SUCCESS', n: count },
  ]);
  expect(await bench.violations()).toEqual([]);
});
