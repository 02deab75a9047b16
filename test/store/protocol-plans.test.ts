import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  type Ask,
  checkpointGroups,
  checkpointOne,
  claim,
  complete,
  type Owner,
  ProtocolBench,
  recordIntent,
  register,
  releaseWorkflow,
  type Session,
  start,
  streamBatch,
  streamGroups,
} from './support-protocol.js';
import { pagesOf } from '../support/pages.js';

/** Enough that reading a table whole, once, is far more pages than any write may touch. */
const ROWS = 100_000;

let bench: ProtocolBench;
let session: Session;

/**
 * The session has made and kept its plans when the tables had a few rows and had just been analysed, and then they grow
 * without anybody telling it. With fewer than about ten rows all ways to a row cost the planner the same, and it may choose
 * one that reads a whole index, until the next autovacuum.
 */
beforeAll(async () => {
  bench = await ProtocolBench.open();
  const { ask } = bench;
  for (const table of [
    'workflow_status',
    'step_result',
    'step_intent',
    'stream_entry',
    'message',
    'workflow_outcome',
    'ended_ownership',
    'workflow_input',
  ]) {
    await ask(`ALTER TABLE @${table} SET (autovacuum_enabled = off)`);
  }
  await register(ask, 'owner');
  await register(ask, 'claimer');
  for (const [index, owner] of (await someOwners(120)).entries()) {
    await checkpointOne(ask, owner, { seq: 0 });
    await streamBatch(ask, { ...owner, version: 2 }, [{ seq: 0 }]);
    if (index % 2 === 0) await complete(ask, { ...owner, version: 3 });
    else await recordIntent(ask, { ...owner, version: 3 }, { seq: 1, sleepMs: 1 });
  }
  await ask('ANALYZE');
  session = await bench.session();
  for (let times = 0; times < 7; times++) {
    for (const { run } of CALLS) await run(session.ask, await someOwners(1));
  }
  await ask(
    `INSERT INTO @workflow_status (workflow_id, name, status, owner_token, epoch, record_version, executor_id, incarnation,
                                   attempts, max_attempts, app_version, created_at, updated_at, owned_at, owned_reason)
     SELECT 'many-' || i, 'flow', 'PENDING', gen_random_uuid(), 2, 1, 'owner', 1, 1, 100, 'v1', @clock(), @clock(), @clock(),
            'claimed'
       FROM generate_series(1, $1) i`,
    [ROWS],
  );
  await ask(
    `INSERT INTO @step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce, started_at,
                               completed_at)
     SELECT 'many-' || i, 0, 'work', 'step', '1', 1, 2, 1, gen_random_uuid(), @clock(), @clock()
       FROM generate_series(1, $1) i`,
    [ROWS],
  );
  // Of one each, and of one that is long.
  await ask(
    `INSERT INTO @stream_entry (workflow_id, stream, entry_offset, value, seq, attempt, epoch, nonce, written_at)
     SELECT 'many-' || i, 's', 0, '1', 0, 1, 1, gen_random_uuid(), @clock() FROM generate_series(1, $1) i
     UNION ALL
     SELECT 'many-1', 'long', i - 1, '1', 0, 1, 1, gen_random_uuid(), @clock() FROM generate_series(1, $1) i`,
    [ROWS],
  );
  // All that two workflows have ever got, in the runs before this one.
  await ask(
    `INSERT INTO @message (workflow_id, message_id, topic, payload, sent_at, consumed_seq)
     SELECT 'many-' || w, 'holdfast:update:' || i, 'holdfast:update:u', '1', @clock(), 0
       FROM generate_series(1, 2) w, generate_series(1, $1) i`,
    [ROWS],
  );
  await ask(`UPDATE @workflow_status SET first_seq = 1 WHERE workflow_id IN ('many-1', 'many-2')`);
  await ask(
    `INSERT INTO @ended_ownership (workflow_id, epoch, executor_id, incarnation, reason, owned_at, ended_at, ended_how)
     SELECT 'many-' || i, 1, 'owner', 1, 'started', @clock(), @clock(), 'released' FROM generate_series(1, $1) i`,
    [ROWS],
  );
});
afterAll(() => bench.close());

async function someOwners(count: number): Promise<Owner[]> {
  const owners: Owner[] = [];
  for (let index = 0; index < count; index++) {
    const owner = { id: `w-${randomUUID()}`, token: randomUUID(), version: 1 };
    await start(bench.ask, owner);
    owners.push(owner);
  }
  return owners;
}

const stale = ([owner]: Owner[]): Owner => ({ ...(owner as Owner), version: 0 });

/** Every call of the hot path, accepted and refused, with the pages that one workflow may cost. */
const CALLS: readonly {
  readonly label: string;
  readonly workflows?: number;
  /** Pages that each of them stays below. Default 100: about 30 are usual with three levels of index. */
  readonly below?: number;
  readonly run: (ask: Ask, owners: Owner[]) => Promise<unknown>;
}[] = [
  { label: 'checkpoint_one', run: (ask, [owner]) => checkpointOne(ask, owner as Owner, { seq: 0 }) },
  { label: 'a refused checkpoint_one', run: (ask, owners) => checkpointOne(ask, stale(owners), { seq: 0 }) },
  {
    label: 'checkpoint_batch',
    workflows: 50,
    run: (ask, owners) =>
      checkpointGroups(
        ask,
        owners.map((who) => ({ who, steps: [{ seq: 0 }, { seq: 1 }] })),
      ),
  },
  {
    label: 'checkpoint_batch of a step each',
    workflows: 50,
    run: (ask, owners) =>
      checkpointGroups(
        ask,
        owners.map((who) => ({ who, steps: [{ seq: 0 }] })),
      ),
  },
  {
    label: 'a refused checkpoint_batch of a step each',
    workflows: 50,
    run: (ask, owners) =>
      checkpointGroups(
        ask,
        owners.map((who) => ({ who: { ...who, version: 0 }, steps: [{ seq: 0 }] })),
      ),
  },
  {
    label: 'a refused checkpoint_batch',
    workflows: 50,
    run: (ask, owners) =>
      checkpointGroups(
        ask,
        owners.map((who) => ({ who: { ...who, version: 0 }, steps: [{ seq: 0 }, { seq: 1 }] })),
      ),
  },
  { label: 'complete_batch', run: (ask, [owner]) => complete(ask, owner as Owner) },
  { label: 'a refused complete_batch', run: (ask, owners) => complete(ask, stale(owners)) },
  { label: 'record_intent', run: (ask, [owner]) => recordIntent(ask, owner as Owner, { seq: 0, sleepMs: 1 }) },
  { label: 'a refused record_intent', run: (ask, owners) => recordIntent(ask, stale(owners), { seq: 0, sleepMs: 1 }) },
  {
    label: 'stream_batch',
    workflows: 50,
    run: (ask, owners) =>
      streamGroups(
        ask,
        owners.map((who) => ({ who, entries: [{ seq: 0, kind: 'stream' }, { seq: 1 }, { seq: 1, place: 0 }] })),
      ),
  },
  {
    label: 'a refused stream_batch',
    workflows: 50,
    run: (ask, owners) =>
      streamGroups(
        ask,
        owners.map((who) => ({
          who: { ...who, version: 0 },
          entries: [
            { seq: 0, kind: 'stream' },
            { seq: 1, place: 0 },
          ],
        })),
      ),
  },
  {
    label: 'stream_batch at the end of a long stream',
    run: async (ask) => {
      const [row] = await bench.ask<{ token: string; version: string }>(
        `SELECT owner_token AS token, record_version AS version FROM @workflow_status WHERE workflow_id = 'many-1'`,
      );
      if (row === undefined) return;
      const who = { id: 'many-1', token: row.token, version: Number(row.version) };
      await streamBatch(ask, who, [{ seq: 1, stream: 'long' }]);
      await streamBatch(ask, { ...who, version: 0 }, [{ seq: 1, stream: 'long' }]);
    },
  },
  {
    label: 'read_stream',
    run: async (ask) => {
      await ask(`SELECT FROM @read_stream('many-1', 'long', 50000, NULL, 100, 1000000)`);
      await ask(`SELECT FROM @read_stream('many-1', 'long', 200000, gen_random_uuid(), 100, 1000000)`);
    },
  },
  {
    label: 'changed_streams',
    workflows: 20,
    run: (ask, owners) =>
      ask('SELECT FROM @changed_streams($1::text[], $2::text[], $3::int8[], $4::uuid[])', [
        ['many-1', ...owners.map(({ id }) => id)],
        ['long', ...owners.map(() => 's')],
        [200_000, ...owners.map(() => 1)],
        [null, ...owners.map(() => randomUUID())],
      ]),
  },
  {
    label: 'read_events of updates that a continuation has left behind, among many',
    run: (ask) =>
      ask(`SELECT FROM @read_events('{many-1,many-1,many-1}', '{holdfast:update:1,holdfast:update:none,another}')`),
  },
  {
    label: 'suspend_workflow, for the answer of one that has got many',
    // It looks for five things, and moves the row in six indexes: 97 to 104.
    below: 120,
    run: async (ask, [owner]) => {
      const wait = { kind: 'event', workflowId: 'many-1', key: 'holdfast:update:none' };
      await ask('SELECT @suspend_workflow($1, $2::uuid, 1, gen_random_uuid(), $3::jsonb)', [
        owner?.id,
        owner?.token,
        JSON.stringify([wait]),
      ]);
    },
  },
  {
    label: 'continue_workflow of one that has got many',
    run: async (ask) => {
      const [row] = await bench.ask<{ token: string }>(
        `SELECT owner_token AS token FROM @workflow_status WHERE workflow_id = 'many-2'`,
      );
      await ask(`SELECT @continue_workflow('many-2', $1::uuid, 1, gen_random_uuid(), '[]', 2, '{1}')`, [row?.token]);
    },
  },
  { label: 'release_workflow', run: (ask, [owner]) => releaseWorkflow(ask, owner as Owner, 'DELAYED') },
  { label: 'a refused release_workflow', run: (ask, owners) => releaseWorkflow(ask, stale(owners)) },
  { label: 'start_batch', run: (ask) => start(ask, { id: `w-${randomUUID()}` }) },
  { label: 'start_batch of an ID that is taken', run: (ask, [owner]) => start(ask, { id: (owner as Owner).id }) },
  {
    label: 'load_history',
    workflows: 20,
    run: (ask, owners) => ask('SELECT FROM @load_history($1::text[])', [owners.map(({ id }) => id)]),
  },
  {
    label: 'read_outcomes',
    workflows: 20,
    run: (ask, owners) => ask('SELECT FROM @read_outcomes($1::text[])', [owners.map(({ id }) => id)]),
  },
  {
    label: 'verify_ownership',
    workflows: 20,
    run: (ask, owners) =>
      ask('SELECT FROM @verify_ownership($1::text[], $2::uuid[])', [
        owners.map(({ id }) => id),
        owners.map(({ token }) => token),
      ]),
  },
  {
    label: 'fail_stuck_workflow',
    run: (ask, [owner]) =>
      ask(`SELECT @fail_stuck_workflow($1, $2::uuid, gen_random_uuid(), '"stuck"')`, [owner?.id, owner?.token]),
  },
  { label: 'a claim that finds nothing', run: (ask) => claim(ask, { limit: 10 }) },
];

describe('with plans made when the tables were small, and 100,000 workflows in them', () => {
  test.each(CALLS)('$label looks up by primary key', async ({ run, workflows = 1, below = 100 }) => {
    const owners = await someOwners(workflows);
    const pages = await pagesOf(session.ask, () => run(session.ask, owners), bench);
    // The smallest of the tables has more than a thousand.
    expect(pages / workflows).toBeLessThan(below);
  });
});
