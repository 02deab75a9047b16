import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import {
  type Answer,
  type Ask,
  bump,
  cancel,
  checkpointBatch,
  checkpointGroups,
  checkpointOne,
  claim,
  complete,
  type Owner,
  ProtocolBench,
  recordIntent,
  register,
  releaseWorkflow,
  remove,
  type Session,
  start,
  streamBatch,
  type Writer,
} from './support-protocol.js';

let bench: ProtocolBench;
let ask: Ask;

beforeAll(async () => {
  bench = await ProtocolBench.open();
  ({ ask } = bench);
  await register(ask, 'owner');
  await register(ask, 'claimer');
});
afterAll(() => bench.close());

async function started(version = 1): Promise<Owner> {
  const owner = { id: `w-${randomUUID()}`, token: randomUUID(), version };
  await start(ask, owner);
  for (let seq = 0; seq < version - 1; seq++) await checkpointOne(ask, { ...owner, version: seq + 1 }, { seq });
  return owner;
}

const recorded = expect.objectContaining({ answer: null }) as Answer;

/** Every write of an execution that checks token and version, in a form that says what its first item was answered. */
const WRITES: readonly {
  readonly label: string;
  readonly write: (ask: Ask, writer: Required<Writer>) => Promise<Answer | undefined>;
}[] = [
  {
    label: 'checkpoint_one',
    write: (a, w) => checkpointOne(a, w, { seq: 3, nonce: w.nonce }),
  },
  {
    label: 'checkpoint_batch',
    write: async (a, w) => {
      const steps = [
        { seq: 3, nonce: w.nonce },
        { seq: 4, nonce: w.nonce },
      ];
      return (await checkpointBatch(a, w, steps))[0];
    },
  },
  {
    label: 'checkpoint_batch of one step',
    write: async (a, w) => (await checkpointBatch(a, w, [{ seq: 3, nonce: w.nonce }]))[0],
  },
  { label: 'complete_batch', write: (a, w) => complete(a, w) },
  { label: 'record_intent', write: (a, w) => recordIntent(a, w, { seq: 3, sleepMs: 1_000 }) },
  {
    label: 'stream_batch of a call',
    write: async (a, w) => (await streamBatch(a, w, [{ seq: 3, kind: 'stream', nonce: w.nonce }]))[0],
  },
  {
    label: 'stream_batch in a step',
    write: async (a, w) => (await streamBatch(a, w, [{ seq: 3, nonce: w.nonce }]))[0],
  },
  { label: 'release_workflow', write: (a, w) => releaseWorkflow(a, w, 'DELAYED') },
];

describe.each(WRITES)('$label', ({ label, write }) => {
  const writer = (owner: Owner): Required<Writer> => ({ ...owner, nonce: randomUUID() });

  test('C9 knows its own commit by the nonce, and changes nothing when it is sent again', async () => {
    const mine = writer(await started());
    expect(await write(ask, mine)).toEqual(recorded);
    const before = await bench.wholeTables();
    expect(await write(ask, mine)).toEqual(recorded);
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('C9 knows its own commit after others have moved the version on', async () => {
    const mine = writer(await started());
    await write(ask, mine);
    await bump(ask, mine.id);
    expect(await write(ask, mine)).toEqual(recorded);
  });

  test('answers a version that moved on under the same token with conflict and the version found', async () => {
    const mine = writer(await started(2));
    await bump(ask, mine.id);
    const before = await bench.wholeTables();
    expect(await write(ask, mine)).toMatchObject({ answer: 'conflict', version: 3, status: 'PENDING', epoch: 1 });
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('answers a token that is gone or another’s with lost', async () => {
    const cancelled = writer(await started());
    await cancel(ask, cancelled.id);
    expect(await write(ask, cancelled)).toMatchObject({ answer: 'lost', status: 'CANCELLED' });
    const claimed = writer(await started());
    await releaseWorkflow(ask, claimed, 'ENQUEUED');
    await claim(ask, { only: [claimed.id] });
    const before = await bench.wholeTables();
    expect(await write(ask, { ...claimed, nonce: randomUUID() })).toMatchObject({ answer: 'lost', epoch: 2 });
    // A version that happens to be right does not help.
    expect(await write(ask, { ...claimed, nonce: randomUUID(), version: 3 })).toMatchObject({ answer: 'lost' });
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('answers a workflow that is not there with missing', async () => {
    const never = writer({ id: `w-${randomUUID()}`, token: randomUUID(), version: 1 });
    expect(await write(ask, never)).toMatchObject({ answer: 'missing', status: null, version: null });
    const deleted = writer(await started());
    await remove(ask, deleted.id);
    expect(await write(ask, deleted)).toMatchObject({ answer: 'missing' });
  });

  test('answers a row that somebody holds with locked, at once, and writes when it is free', async () => {
    const mine = writer(await started());
    const holder = await bench.session();
    await holder.ask('BEGIN');
    await holder.ask('SELECT FROM @workflow_status WHERE workflow_id = $1 FOR UPDATE', [mine.id]);
    expect(await write(ask, mine)).toMatchObject({ answer: 'locked', version: 1 });
    await holder.ask('ROLLBACK');
    expect(await write(ask, mine)).toEqual(recorded);
    await holder.end();
  });

  if (label.startsWith('checkpoint') || label === 'record_intent' || label === 'stream_batch of a call') {
    test('answers a number that somebody else’s result has with nondeterminism, and with what is there', async () => {
      const owner = await started();
      await checkpointOne(ask, owner, { seq: 3, name: 'charge' });
      const before = await bench.wholeTables();
      expect(await write(ask, writer(owner))).toMatchObject({ answer: 'nondeterminism', detail: 'step charge' });
      expect(await bench.wholeTables()).toEqual(before);
    });
  }

  test('C9 sent again while its own first try is being committed, it is answered with locked or recorded only', async () => {
    const mine = writer(await started(2));
    const [first, second] = [await bench.session(), await bench.session()];
    const gates = await gateReads();
    onTestFinished(() => gates.remove());
    await first.ask('BEGIN');
    await write(first.ask, mine);
    await gates.close();
    // The row is skipped, and the look for the nonce has its snapshot when it stops at the gate.
    const again = write(second.ask, mine);
    await bench.untilSettledOrBlocked(second.pid, again);
    await first.ask('COMMIT');
    await gates.open();
    expect([null, 'locked']).toContain((await again)?.answer);
    expect(await write(ask, mine)).toEqual(recorded);
    await Promise.all([first.end(), second.end()]);
  });
});

/**
 * Puts a view in front of the tables that nonces are looked for in: a statement that reads one has its snapshot when it
 * waits at the closed gate.
 */
async function gateReads(): Promise<{ close(): Promise<unknown>; open(): Promise<unknown>; remove(): Promise<void> }> {
  const tables = ['step_result', 'step_intent', 'stream_entry', 'ended_ownership', 'workflow_outcome'];
  const key = 4711;
  // The function that waits there may have a lock_timeout of its own.
  await ask(`CREATE FUNCTION @gate() RETURNS boolean LANGUAGE plpgsql STABLE SET lock_timeout = 0 AS $$
    BEGIN PERFORM pg_advisory_lock_shared(${key}); PERFORM pg_advisory_unlock_shared(${key}); RETURN true; END $$`);
  for (const table of tables) {
    await ask(`ALTER TABLE @${table} RENAME TO ${table}_behind`);
    await ask(`CREATE VIEW @${table} AS SELECT * FROM @${table}_behind WHERE @gate()`);
  }
  const guard: Session = await bench.session();
  return {
    close: () => guard.ask(`SELECT pg_advisory_lock(${key})`),
    open: () => guard.ask(`SELECT pg_advisory_unlock(${key})`),
    remove: async () => {
      for (const table of tables) {
        await ask(`DROP VIEW @${table}`);
        await ask(`ALTER TABLE @${table}_behind RENAME TO ${table}`);
      }
      await ask('DROP FUNCTION @gate()');
      await guard.end();
    },
  };
}

describe('start_batch', () => {
  test('C9 knows its own commit by the nonce, and changes nothing when it is sent again', async () => {
    const call = { id: `w-${randomUUID()}`, token: randomUUID(), nonce: randomUUID() };
    expect(await start(ask, call)).toEqual(recorded);
    const before = await bench.wholeTables();
    expect(await start(ask, call)).toEqual(recorded);
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('says that its workflow was taken over meanwhile', async () => {
    const call = { id: `w-${randomUUID()}`, token: randomUUID(), nonce: randomUUID() };
    await start(ask, call);
    await cancel(ask, call.id);
    expect(await start(ask, call)).toMatchObject({ answer: 'lost', status: 'CANCELLED' });
  });

  test('C2 finds an ID that is taken, with name and status, and spends nothing', async () => {
    const { id } = await started();
    const before = await bench.wholeTables();
    expect(await start(ask, { id, name: 'other' })).toMatchObject({
      answer: 'exists',
      detail: 'flow',
      status: 'PENDING',
    });
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('C8 two starts of one ID in one batch make one workflow', async () => {
    const id = `w-${randomUUID()}`;
    const tokens = [randomUUID(), randomUUID()];
    const rows = await ask(
      `SELECT item, answer FROM @start_batch('owner', 1, 'v1', $1::text[], $2::uuid[], $3::uuid[], ARRAY['flow', 'flow'],
         NULL, ARRAY['1', '2'], ARRAY[100, 100], NULL, NULL)`,
      [[id, id], tokens, [randomUUID(), randomUUID()]],
    );
    expect(rows).toEqual([{ item: 2, answer: 'exists' }]);
    expect(await ask('SELECT input FROM @workflow_input WHERE workflow_id = $1', [id])).toEqual([{ input: '1' }]);
  });

  test('asks to be tried again when the row that took its ID is deleted at that moment', async () => {
    const { id } = await started();
    const [starter, deleter] = [await bench.session(), await bench.session()];
    // It stops between its insert and its answer, at a table that it needs for both.
    await ask(`ALTER FUNCTION @start_batch SET lock_timeout = 0`);
    await deleter.ask('BEGIN');
    await deleter.ask('LOCK TABLE @workflow_input IN SHARE MODE');
    const answer = start(starter.ask, { id });
    await bench.untilBlocked(starter.pid);
    await ask('DELETE FROM @workflow_status WHERE workflow_id = $1', [id]);
    await deleter.ask('COMMIT');
    expect(await answer).toMatchObject({ answer: 'missing' });
    await ask(`ALTER FUNCTION @start_batch SET lock_timeout = '50ms'`);
    await Promise.all([starter.end(), deleter.end()]);
    await ask('DELETE FROM @workflow_input WHERE workflow_id = $1', [id]);
  });

  test('waits a moment, and not for ever, for a transaction that is inserting its ID', async () => {
    const holder = await bench.session();
    const id = `w-${randomUUID()}`;
    await holder.ask('BEGIN');
    await start(holder.ask, { id });
    await expect(start(ask, { id })).rejects.toMatchObject({ code: '55P03' });
    await holder.ask('ROLLBACK');
    expect(await start(ask, { id })).toEqual(recorded);
    await holder.end();
  });
});

describe('record_intent', () => {
  const child = (): { id: string; token: string } => ({ id: `c-${randomUUID()}`, token: randomUUID() });

  test('C28 creates the child with the parent’s intent, and finds it again', async () => {
    const [parent, kid, nonce] = [await started(), child(), randomUUID()];
    const call = { seq: 0, child: kid };
    expect(await recordIntent(ask, { ...parent, nonce }, call)).toMatchObject({ answer: null, child: 'created' });
    const before = await bench.wholeTables();
    expect(await recordIntent(ask, { ...parent, nonce }, call)).toMatchObject({ answer: null, child: 'created' });
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('C28 a parent that lost ownership creates no child', async () => {
    const [parent, kid] = [await started(), child()];
    await cancel(ask, parent.id);
    expect(await recordIntent(ask, parent, { seq: 0, child: kid })).toMatchObject({ answer: 'lost' });
    expect(await ask('SELECT FROM @workflow_status WHERE workflow_id = $1', [kid.id])).toEqual([]);
  });

  test('attaches to a workflow of the same name, and refuses one of another', async () => {
    const [parent, kid] = [await started(), child()];
    await start(ask, { id: kid.id, name: 'child-flow' });
    expect(await recordIntent(ask, parent, { seq: 0, child: kid })).toMatchObject({ answer: null, child: 'attached' });
    const before = await bench.wholeTables();
    const other = { ...kid, name: 'another-flow' };
    expect(await recordIntent(ask, { ...parent, version: 2 }, { seq: 1, child: other })).toMatchObject({
      answer: 'child_name_taken',
      detail: 'child-flow',
    });
    expect(await bench.wholeTables()).toEqual(before);
  });

  test('says attached of a child that it created and that has another owner since', async () => {
    const [parent, kid, nonce] = [await started(), child(), randomUUID()];
    await recordIntent(ask, { ...parent, nonce }, { seq: 0, child: kid });
    await cancel(ask, kid.id);
    expect(await recordIntent(ask, { ...parent, nonce }, { seq: 0, child: kid })).toMatchObject({ child: 'attached' });
  });

  test('creates the child whose ID was taken when it inserted, and is free when it reads whose it is', async () => {
    const [parent, kid] = [await started(), child()];
    await start(ask, { id: kid.id, name: 'another-flow' });
    const [caller, guard] = [await bench.session(), await bench.session()];
    // Stops it between its insert, which meets the row, and its look at the row's name.
    await ask(`CREATE FUNCTION @gate() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock_shared(4712); RETURN NULL; END $$`);
    await ask('CREATE TRIGGER gate AFTER INSERT ON @workflow_status FOR EACH STATEMENT EXECUTE FUNCTION @gate()');
    await ask('ALTER FUNCTION @record_intent SET lock_timeout = 0');
    await guard.ask('SELECT pg_advisory_lock(4712)');
    const answer = recordIntent(caller.ask, parent, { seq: 0, child: kid });
    await bench.untilBlocked(caller.pid);
    await remove(ask, kid.id);
    await guard.ask('SELECT pg_advisory_unlock(4712)');
    expect(await answer).toMatchObject({ answer: null, child: 'created' });
    await ask('DROP TRIGGER gate ON @workflow_status');
    await ask('DROP FUNCTION @gate()');
    await ask(`ALTER FUNCTION @record_intent SET lock_timeout = '50ms'`);
    await Promise.all([caller.end(), guard.end()]);
  });
});

describe('checkpoint_batch', () => {
  test('bumps the row of a workflow once for all its steps, by their number', async () => {
    const owner = await started();
    const [before] = await ask('SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = $1', [
      'workflow_status',
    ]);
    expect(before).toBeDefined();
    const session = await bench.session();
    await session.ask('BEGIN');
    await checkpointBatch(session.ask, owner, [{ seq: 0 }, { seq: 1 }, { seq: 2 }]);
    const counted = await session.ask(
      `SELECT n_tup_upd::int AS updates FROM pg_stat_xact_user_tables
        WHERE relid = to_regclass($1)`,
      [`"${bench.schema}".workflow_status`],
    );
    await session.ask('COMMIT');
    expect(counted).toEqual([{ updates: 1 }]);
    const rows = await ask('SELECT record_version::int AS v FROM @step_result WHERE workflow_id = $1 ORDER BY seq', [
      owner.id,
    ]);
    expect(rows).toEqual([{ v: 2 }, { v: 3 }, { v: 4 }]);
    const [status] = await ask('SELECT record_version::int AS v FROM @workflow_status WHERE workflow_id = $1', [
      owner.id,
    ]);
    expect(status).toEqual({ v: 4 });
    await session.end();
  });

  test('a step that follows the owner’s in the batch, but has another token, is not written', async () => {
    const owner = await started();
    const nonce = randomUUID();
    const rows = await ask(
      `SELECT item, answer FROM @checkpoint_batch($1::text[], $2::uuid[], '{1,2}', '{1,0}', $3::uuid[], '{0,1}', '{a,b}',
         '{step,step}', '{1,2}', NULL, '{1,1}', NULL, NULL, '{0,0}')`,
      [
        [owner.id, owner.id],
        [owner.token, randomUUID()],
        [randomUUID(), nonce],
      ],
    );
    expect(rows).toEqual([{ item: 2, answer: 'lost' }]);
    expect(await ask('SELECT seq FROM @step_result WHERE workflow_id = $1', [owner.id])).toEqual([{ seq: 0 }]);
  });

  test('each workflow’s check is its own', async () => {
    const [good, stale, gone, held] = [await started(), await started(2), await started(), await started()];
    await remove(ask, gone.id);
    const holder = await bench.session();
    await holder.ask('BEGIN');
    await holder.ask('SELECT FROM @workflow_status WHERE workflow_id = $1 FOR UPDATE', [held.id]);
    const answers = await checkpointGroups(ask, [
      { who: held, steps: [{ seq: 0 }, { seq: 1 }] },
      { who: gone, steps: [{ seq: 0 }] },
      { who: { ...stale, version: 1 }, steps: [{ seq: 5 }] },
      { who: good, steps: [{ seq: 0 }, { seq: 1 }] },
    ]);
    expect(answers.map(({ answer }) => answer)).toEqual([
      'locked',
      expect.any(String),
      'missing',
      'conflict',
      null,
      null,
    ]);
    await holder.ask('ROLLBACK');
    await holder.end();
  });
});

describe('the limits of numbers and times', () => {
  test('a step that took 24 days and a sleep of 1,000 years are recorded as they are', async () => {
    const owner = await started();
    expect(await checkpointOne(ask, owner, { seq: 0, elapsedMs: 2_147_483_647 })).toEqual(recorded);
    const years = 365_250 * 86_400_000;
    const answer = await recordIntent(ask, { ...owner, version: 2 }, { seq: 1, sleepMs: years });
    expect(answer.remainingMs).toBe(years);
    const [history] = await ask<{ remaining_ms: number }>(
      'SELECT remaining_ms FROM @load_history(ARRAY[$1]) WHERE NOT complete',
      [owner.id],
    );
    expect(history?.remaining_ms).toBeGreaterThan(years - 60_000);
    expect(history?.remaining_ms).toBeLessThanOrEqual(years);
  });

  test('versions and epochs beyond four billion are counted exactly', async () => {
    const owner = { ...(await started()), version: 2 ** 40 + 1 };
    await ask('UPDATE @workflow_status SET record_version = $2, epoch = $3 WHERE workflow_id = $1', [
      owner.id,
      owner.version,
      2 ** 41,
    ]);
    await checkpointBatch(ask, owner, [{ seq: 0 }, { seq: 1 }]);
    expect(await checkpointOne(ask, owner, { seq: 7 })).toMatchObject({
      answer: 'conflict',
      version: owner.version + 2,
      epoch: 2 ** 41,
    });
    await ask('DELETE FROM @workflow_status WHERE workflow_id = $1', [owner.id]);
    await ask('DELETE FROM @step_result WHERE workflow_id = $1', [owner.id]);
  });
});
