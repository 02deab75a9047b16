import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  type Answer,
  type Ask,
  checkpointGroups,
  checkpointOne,
  complete,
  type Owner,
  ProtocolBench,
  register,
  start,
} from './support-protocol.js';

/** What the batches ask of a row before they update it without locking it. */
const NOBODY_HOLDS = "(s.xmax = '0' OR s.xmax = s.xmin)";
const GATE = 4713;

let bench: ProtocolBench;
let ask: Ask;

beforeAll(async () => {
  bench = await ProtocolBench.open();
  ({ ask } = bench);
  await register(ask, 'owner');
});
afterAll(() => bench.close());

async function started(on: Ask = ask): Promise<Owner> {
  const owner = { id: `w-${randomUUID()}`, token: randomUUID(), version: 1 };
  await start(on, owner);
  return owner;
}

const lock = (on: Ask, { id }: Owner, how: string): Promise<unknown> =>
  on(`SELECT FROM @workflow_status WHERE workflow_id = $1 FOR ${how}`, [id]);

async function outcomes(on: Ask, owners: readonly Owner[]): Promise<(string | null)[]> {
  const rows = await on<{ item: number; answer: string }>(
    `SELECT item, answer FROM @complete_batch($1::text[], $2::uuid[], $3::int8[], $4::uuid[], $5::text[], $6::text[], NULL, NULL)`,
    [
      owners.map(({ id }) => id),
      owners.map(({ token }) => token),
      owners.map(({ version }) => version),
      owners.map(() => randomUUID()),
      owners.map(() => 'SUCCESS'),
      owners.map(() => '1'),
    ],
  );
  return owners.map((_, index) => rows.find(({ item }) => item === index + 1)?.answer ?? null);
}

const steps = async (on: Ask, owners: readonly Owner[]): Promise<(string | null)[]> =>
  (
    await checkpointGroups(
      on,
      owners.map((who) => ({ who, steps: [{ seq: 0 }] })),
    )
  ).map(({ answer }: Answer) => answer);

describe.each([
  { label: 'checkpoint_batch of a step each', write: steps },
  { label: 'complete_batch', write: outcomes },
])('$label', ({ write }) => {
  test('a row that is held is answered with locked; the others are recorded, also one that was held a moment ago', async () => {
    const owners = [await started(), await started(), await started(), await started()] as const;
    const [, held, shared, freed] = owners;
    const holder = await bench.session();
    await lock(ask, freed, 'UPDATE');
    await holder.ask('BEGIN');
    await lock(holder.ask, held, 'NO KEY UPDATE');
    // As a sender does. It keeps nobody from writing.
    await lock(holder.ask, shared, 'KEY SHARE');
    expect(await write(ask, owners)).toEqual([null, 'locked', null, null]);
    await holder.ask('ROLLBACK');
    expect(await write(ask, [held])).toEqual([null]);
    await holder.end();
  });

  test('a row that an execution has written again and again is not locked before it is written', async () => {
    const owner = await started();
    await checkpointOne(ask, owner, { seq: 7 });
    const session = await bench.session();
    await session.ask('BEGIN');
    expect(await write(session.ask, [{ ...owner, version: 2 }])).toEqual([null]);
    const [row] = await session.ask<{ xmax: string }>(
      'SELECT xmax::text FROM @workflow_status WHERE workflow_id = $1',
      [owner.id],
    );
    // A lock before it would be on the new row, too.
    expect(row?.xmax).toBe('0');
    await session.ask('COMMIT');
    await session.end();
  });
});

test('who locks a row between the look and the update makes the batch wait, as long as lock_timeout lets it', async () => {
  const mutant = await bench.mutant('gated', (sql) => {
    if (!sql.includes(NOBODY_HOLDS)) throw new Error(`The functions do not contain "${NOBODY_HOLDS}".`);
    return sql.replaceAll(
      NOBODY_HOLDS,
      `CASE WHEN ${NOBODY_HOLDS} THEN pg_advisory_xact_lock_shared(${String(GATE)}) IS NOT NULL ELSE false END`,
    );
  });
  await register(mutant.ask, 'owner');
  const owner = await started(mutant.ask);
  const [guard, holder, caller] = [await mutant.session(), await mutant.session(), await mutant.session()];
  await guard.ask(`SELECT pg_advisory_lock(${String(GATE)})`);
  await mutant.ask(`ALTER FUNCTION @complete_batch SET lock_timeout = '20s'`);
  const answer = complete(caller.ask, owner);
  await mutant.untilBlocked(caller.pid);
  await holder.ask('BEGIN');
  await lock(holder.ask, owner, 'NO KEY UPDATE');
  await guard.ask(`SELECT pg_advisory_unlock(${String(GATE)})`);
  await mutant.untilBlocked(caller.pid);
  await holder.ask('COMMIT');
  // The holder has changed nothing: what was looked at is still so.
  expect(await answer).toMatchObject({ answer: null });
  const bounded = await ask(
    `SELECT proname FROM pg_proc WHERE pronamespace = $1::text::regnamespace AND 'lock_timeout=50ms' = ANY (proconfig)
        AND proname IN ('checkpoint_batch', 'complete_batch') ORDER BY 1`,
    [bench.schema],
  );
  expect(bounded).toEqual([{ proname: 'checkpoint_batch' }, { proname: 'complete_batch' }]);
  await Promise.all([guard, holder, caller].map((session) => session.end()));
  await mutant.leave();
});
