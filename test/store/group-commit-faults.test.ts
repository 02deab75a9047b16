import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { ConnectionLostError, ConnectionUnavailableError, DatabaseError } from '../../src/errors/database-errors.js';
import type { Ownership, StartAnswer } from '../../src/store/store.js';
import { type PgProxy, startPgProxyFor } from '../support/pg-proxy.js';
import { type Ask, ProtocolBench, until } from './support-protocol.js';
import { child, isWrite, step, SUCCESS, WriterBench } from './support-writer.js';

let bench: ProtocolBench;
let ask: Ask;
let proxy: PgProxy;
let writer: WriterBench;

beforeAll(async () => {
  bench = await ProtocolBench.open();
  ({ ask } = bench);
  proxy = await startPgProxyFor(bench.database.url);
});
afterAll(async () => {
  expect(await bench.violations()).toEqual([]);
  await bench.close();
  await proxy.close();
});
beforeEach(async () => {
  writer = await WriterBench.open(bench, { url: proxy.connectionString(bench.database.url) });
  return () => writer.store.close();
});

async function count(table: string, workflowId: string): Promise<number> {
  const [row] = await ask<{ rows: number }>(`SELECT count(*)::int AS rows FROM @${table} WHERE workflow_id = $1`, [
    workflowId,
  ]);
  return row?.rows ?? 0;
}

describe.each([
  { fault: 'drop-reply', title: 'the reply is lost after the commit' },
  { fault: 'cut-before', title: 'the connection is cut before the statement arrives' },
] as const)('C9 $title', ({ fault }) => {
  test('start: started once, and owned by its caller', async () => {
    const armed = proxy.arm({ do: fault, reset: true }, /start_batch/);
    const request = writer.startRequest();
    expect(await writer.store.start(request)).toEqual({
      kind: 'started',
      ownership: { workflowId: request.workflowId, token: request.token, epoch: 1, recordVersion: 1 },
    });
    expect(armed.hits).toBe(1);
    for (const table of ['workflow_status', 'workflow_input', 'workflow_ownership']) {
      expect(await count(table, request.workflowId)).toBe(1);
    }
  });

  test('a lone checkpoint: recorded once', async () => {
    const ownership = await writer.started();
    const armed = proxy.arm({ do: fault }, /checkpoint_one/);
    expect(await writer.store.checkpoint(ownership, step(0))).toEqual({ kind: 'written' });
    expect(armed.hits).toBe(1);
    expect(await count('step_result', ownership.workflowId)).toBe(1);
    expect(await writer.store.checkpoint(ownership, step(1))).toEqual({ kind: 'written' });
    expect(ownership.recordVersion).toBe(3);
  });

  test('a batch of everything: each recorded once', async () => {
    const ownerships = await writer.startedMany(10);
    const armed = proxy.arm({ do: fault }, /checkpoint_batch/);
    const answers: Promise<{ kind: string }>[] = ownerships.flatMap((ownership, index) =>
      index < 5
        ? [writer.store.checkpoint(ownership, step(0)), writer.store.checkpoint(ownership, step(1))]
        : [writer.store.complete(ownership, SUCCESS)],
    );
    const fresh = writer.startRequest();
    const started = writer.store.start(fresh);
    expect((await Promise.all(answers)).every(({ kind }) => kind === 'written')).toBe(true);
    expect((await started).kind).toBe('started');
    expect(armed.hits).toBe(1);
    for (const [index, { workflowId, recordVersion }] of ownerships.entries()) {
      expect(await count('step_result', workflowId)).toBe(index < 5 ? 2 : 0);
      expect(await count('workflow_outcome', workflowId)).toBe(index < 5 ? 0 : 1);
      const [row] = await ask('SELECT record_version::int AS v FROM @workflow_status WHERE workflow_id = $1', [
        workflowId,
      ]);
      expect(row).toEqual({ v: recordVersion });
    }
  });

  test('the start of a child: created once, and the caller is told that it has to run it', async () => {
    const ownership = await writer.started();
    const kid = child();
    const armed = proxy.arm({ do: fault }, /record_intent/);
    const answer = await writer.store.recordIntent(ownership, { seq: 0, name: 'c', kind: 'workflow', child: kid });
    expect(answer).toEqual({ kind: 'written', remainingMs: null, child: 'created' });
    expect(armed.hits).toBe(1);
    expect(await count('workflow_status', kid.workflowId)).toBe(1);
    expect(await count('workflow_ownership', kid.workflowId)).toBe(1);
    expect(await count('step_intent', ownership.workflowId)).toBe(1);
  });

  test('an outcome: recorded once, under the caller’s eyes', async () => {
    const ownership = await writer.started();
    const armed = proxy.arm({ do: fault }, /complete_batch/);
    expect(await writer.store.complete(ownership, SUCCESS)).toEqual({ kind: 'written' });
    expect(armed.hits).toBe(1);
    expect(await count('workflow_outcome', ownership.workflowId)).toBe(1);
  });

  test('a release: given back once', async () => {
    const ownership = await writer.started();
    const armed = proxy.arm({ do: fault }, /release_workflow/);
    expect(await writer.store.release(ownership, { to: 'ENQUEUED', unspendAttempt: true })).toEqual({
      kind: 'written',
    });
    expect(armed.hits).toBe(1);
    const [row] = await ask(
      'SELECT status, attempts, record_version::int AS v FROM @workflow_status WHERE workflow_id = $1',
      [ownership.workflowId],
    );
    expect(row).toEqual({ status: 'ENQUEUED', attempts: 0, v: 2 });
  });

  test('the end of a stuck workflow: one outcome', async () => {
    const ownership = await writer.started();
    const armed = proxy.arm({ do: fault }, /fail_stuck_workflow/);
    await writer.store.failStuck(ownership, '"stuck"');
    expect(armed.hits).toBe(1);
    expect(await count('workflow_outcome', ownership.workflowId)).toBe(1);
    expect(await count('admin_audit', ownership.workflowId)).toBe(1);
  });
});

describe('C60 failures that pass', () => {
  const failures: readonly { readonly label: string; readonly failure: () => Error }[] = [
    ...['40P01', '40001', '53300', '53100', '57P03', '55P03', '57014', '25006'].map((sqlState) => ({
      label: sqlState,
      failure: () => new DatabaseError('It passes.', { sqlState }),
    })),
    { label: 'an admin shutdown (57P01)', failure: () => new ConnectionLostError('The session was ended.') },
    { label: 'no connection to be had', failure: () => new ConnectionUnavailableError('None within the limit.') },
  ];

  test.each(failures)('$label is tried again until the write is through', async ({ failure }) => {
    const [first, second] = (await writer.startedMany(2)) as [Ownership, Ownership];
    let left = 3;
    writer.tap = (statement) => {
      if (isWrite(statement) && left-- > 0) throw failure();
    };
    const request = writer.startRequest();
    const answers = await Promise.all([
      writer.store.checkpoint(first, step(0)),
      writer.store.checkpoint(first, step(1)),
      writer.store.complete(second, SUCCESS),
      writer.store.start(request),
      writer.store.recordIntent(await writer.started(), { seq: 0, name: 's', kind: 'sleep', sleep: { ms: 1 } }),
    ]);
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'written', 'written', 'started', 'written']);
    expect(left).toBeLessThan(0);
  });

  test('C54 sessions that are ended all the time lose no write and double none', async () => {
    const killer = await bench.session();
    const killing = (async () => {
      let kills = 0;
      while (kills < 25) {
        const rows = await killer.ask(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'holdfast' AND state = 'active'`,
        );
        kills += rows.length;
        // Writes need a moment in between to get through at all.
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
    })();
    const run = async (): Promise<Ownership> => {
      const parent = await writer.started();
      for (let seq = 0; seq < 12; seq += 3) {
        const answers = await Promise.all([
          writer.store.checkpoint(parent, step(seq)),
          writer.store.checkpoint(parent, step(seq + 1)),
          writer.store.recordIntent(parent, { seq: seq + 2, name: 'c', kind: 'workflow', child: child() }),
        ]);
        expect(answers.map(({ kind }) => kind)).toEqual(['written', 'written', 'written']);
      }
      expect(await writer.store.complete(parent, SUCCESS)).toEqual({ kind: 'written' });
      return parent;
    };
    const ownerships: Ownership[] = [];
    const streams = Array.from({ length: 8 }, async () => {
      do ownerships.push(await run());
      while (await isPending(killing));
    });
    await Promise.all(streams);
    await killer.end();
    for (const { workflowId, recordVersion } of ownerships) {
      expect(recordVersion).toBe(14);
      expect(await count('step_result', workflowId)).toBe(8);
      expect(await count('step_intent', workflowId)).toBe(4);
      expect(await count('workflow_outcome', workflowId)).toBe(1);
      const [row] = await ask(
        `SELECT record_version::int AS v, (SELECT count(*)::int FROM @workflow_status c WHERE c.parent_id = s.workflow_id)
                AS children FROM @workflow_status s WHERE workflow_id = $1`,
        [workflowId],
      );
      expect(row).toEqual({ v: 14, children: 4 });
    }
  });
});

/** Whether a promise has not settled yet. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}

describe('two processes', () => {
  test('C8 twenty starts of one ID from two processes are one workflow', async () => {
    const second = await WriterBench.open(bench);
    for (let round = 0; round < 20; round++) {
      const workflowId = `w-${randomUUID()}`;
      const answers: StartAnswer[] = await Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const from = index % 2 === 0 ? writer : second;
          return from.store.start(from.startRequest({ workflowId }));
        }),
      );
      expect(answers.filter(({ kind }) => kind === 'started')).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'exists')).toHaveLength(19);
    }
    await second.store.close();
  });

  test('owners and zombies that write the same workflows in opposite order never deadlock', async () => {
    const second = await WriterBench.open(bench);
    const before = await deadlocks();
    const ownerships = await writer.startedMany(60);
    const zombies = ownerships.map((ownership) => ({ ...ownership }));
    const stale = zombies.map((zombie) => ({ ...zombie, token: randomUUID() }));
    for (let seq = 0; seq < 15; seq++) {
      const results = await Promise.all([
        ...ownerships.map((ownership) => writer.store.checkpoint(ownership, step(seq))),
        ...[...stale].reverse().map((zombie) => second.store.checkpoint(zombie, step(seq))),
      ]);
      expect(results.slice(0, 60).every(({ kind }) => kind === 'written')).toBe(true);
      expect(results.slice(60).every(({ kind }) => kind === 'lost')).toBe(true);
    }
    expect(await deadlocks()).toBe(before);
    await second.store.close();
  });

  test('parents that start the same children in opposite order never deadlock', async () => {
    const second = await WriterBench.open(bench);
    const before = await deadlocks();
    for (let round = 0; round < 10; round++) {
      const kids = Array.from({ length: 40 }, () => child());
      const [mine, theirs] = [await writer.startedMany(40), await second.startedMany(40)];
      const intents = (bench_: WriterBench, parents: Ownership[], order: typeof kids): Promise<{ kind: string }>[] =>
        parents.map((parent, index) =>
          bench_.store.recordIntent(parent, {
            seq: 0,
            name: 'c',
            kind: 'workflow',
            child: { ...(order[index] as (typeof kids)[number]), token: randomUUID() },
          }),
        );
      const answers = await Promise.all([
        ...intents(writer, mine, kids),
        ...intents(second, theirs, [...kids].reverse()),
        ...kids.map((kid) => second.store.start(second.startRequest({ workflowId: kid.workflowId, name: kid.name }))),
      ]);
      const made = answers.filter(
        (answer) => answer.kind === 'started' || ('child' in answer && answer.child === 'created'),
      );
      expect(made).toHaveLength(40);
    }
    expect(await deadlocks()).toBe(before);
    await second.store.close();
  });

  async function deadlocks(): Promise<number> {
    const [row] = await ask<{ deadlocks: number }>(
      'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return row?.deadlocks ?? -1;
  }
});

describe('closing', () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  test('rejects what waits with STORE_CLOSED, what is under way included, and leaves no timer', async () => {
    const own = await WriterBench.open(bench);
    const [held, conflicting, ...others] = (await own.startedMany(8)) as [Ownership, Ownership, ...Ownership[]];
    const holder = await bench.session();
    await holder.ask('BEGIN');
    await holder.ask('SELECT FROM @workflow_status WHERE workflow_id IN ($1, $2) FOR UPDATE', [
      held.workflowId,
      conflicting.workflowId,
    ]);
    const before = timers();
    let letGo: () => void = () => undefined;
    const blackHole = new Promise<void>((resolve) => (letGo = resolve));
    let isHanging = 0;
    const locked = own.store.checkpoint(held, step(0));
    const releasing = own.store.release(conflicting, { to: 'ENQUEUED', unspendAttempt: false });
    await until('both were answered with locked', () => own.sent.length >= 4 || undefined);
    own.tap = () => {
      isHanging += 1;
      return blackHole;
    };
    const underWay = others.map((ownership) => own.store.checkpoint(ownership, step(0)));
    await until('a flush hangs', () => isHanging > 0 || undefined);
    const queued = others.map((ownership) => own.store.checkpoint(ownership, step(1)));
    const closed = Promise.allSettled([locked, ...underWay, ...queued]);
    await own.store.close();
    for (const result of await closed) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'STORE_CLOSED' } });
    }
    letGo();
    await expect(releasing).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(own.store.checkpoint(held, step(2))).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await until('the last statement is answered', () => timers() <= before || undefined);
    await holder.ask('ROLLBACK');
    await holder.end();
  });

  test('waits for what is under way when it is given time', async () => {
    const own = await WriterBench.open(bench);
    const ownerships = await own.startedMany(50);
    const answers = Promise.all(ownerships.map((ownership) => own.store.checkpoint(ownership, step(0))));
    await own.store.close({ drainMs: 10_000 });
    expect((await answers).every(({ kind }) => kind === 'written')).toBe(true);
  });
});
