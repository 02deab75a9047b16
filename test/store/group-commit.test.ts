import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { MAX_BATCH_BYTES, MAX_BATCH_ROWS } from '../../src/store/postgres/write-batch.js';
import type { Ownership, StartRequest, WriteAnswer } from '../../src/store/store.js';
import { type Ask, bump, cancel, ProtocolBench, type Session, start, until } from './support-protocol.js';
import { child, isWrite, type SentStatement, step, SUCCESS, WriterBench } from './support-writer.js';

let bench: ProtocolBench;
let ask: Ask;
let writer: WriterBench;

beforeAll(async () => {
  bench = await ProtocolBench.open();
  ({ ask } = bench);
});
afterAll(async () => {
  expect(await bench.violations()).toEqual([]);
  await bench.close();
});
beforeEach(async () => {
  writer = await WriterBench.open(bench);
  return () => writer.store.close();
});

const WRITTEN: WriteAnswer = { kind: 'written' };

async function stepsOf(workflowId: string): Promise<{ seq: number; version: number }[]> {
  return ask(
    `SELECT seq, record_version::int AS version FROM @step_result WHERE workflow_id = $1 ORDER BY record_version`,
    [workflowId],
  );
}

async function lockRow(workflowId: string): Promise<{ session: Session; release(): Promise<void> }> {
  const session = await bench.session();
  await session.ask('BEGIN');
  await session.ask('SELECT FROM @workflow_status WHERE workflow_id = $1 FOR UPDATE', [workflowId]);
  return {
    session,
    release: async () => {
      await session.ask('ROLLBACK');
      await session.end();
    },
  };
}

/** The workflow IDs of a batch of checkpoints. */
function idsIn({ name, parameters }: SentStatement): readonly unknown[] {
  return name === 'holdfast_checkpoint_one' ? [parameters[0]] : (parameters[0] as readonly unknown[]);
}

describe('what travels together', () => {
  test('a lone checkpoint takes the fast path', async () => {
    const [ownership] = (await writer.startedMany(1)) as [Ownership];
    expect(await writer.store.checkpoint(ownership, step(0))).toEqual(WRITTEN);
    expect(writer.writes.map(({ name }) => name)).toEqual(['holdfast_checkpoint_one']);
    expect(ownership.recordVersion).toBe(2);
  });

  test('writes that become ready together are one statement', async () => {
    const ownerships = await writer.startedMany(16);
    const answers = await Promise.all(ownerships.map((ownership) => writer.store.checkpoint(ownership, step(0))));
    expect(answers).toEqual(ownerships.map(() => WRITTEN));
    expect(writer.writes).toHaveLength(1);
  });

  test('many that become ready together are shared among the lanes', async () => {
    const ownerships = await writer.startedMany(100);
    const before = writer.writes.length;
    await Promise.all(ownerships.map((ownership) => writer.store.checkpoint(ownership, step(0))));
    expect(writer.writes.length - before).toBe(2);
  });

  test('several checkpoints of one workflow are one update of its row, and results keep the order of the calls', async () => {
    const [ownership] = (await writer.startedMany(1)) as [Ownership];
    const order: number[] = [];
    await Promise.all(
      [4, 2, 0, 3, 1].map(async (seq) => {
        await writer.store.checkpoint(ownership, step(seq));
        order.push(seq);
      }),
    );
    expect(writer.writes).toHaveLength(1);
    expect(order).toEqual([4, 2, 0, 3, 1]);
    expect(await stepsOf(ownership.workflowId)).toEqual(
      [4, 2, 0, 3, 1].map((seq, index) => ({ seq, version: index + 2 })),
    );
    const transactions = await ask('SELECT DISTINCT xmin::text FROM @step_result WHERE workflow_id = $1', [
      ownership.workflowId,
    ]);
    expect(transactions).toHaveLength(1);
    expect(ownership.recordVersion).toBe(6);
  });

  test('an execution has at most one flush under way, however many writes it has', async () => {
    const ownerships = await writer.startedMany(3);
    const underWay = new Map<unknown, number>();
    let most = 0;
    writer.tap = (statement) => {
      for (const id of new Set(idsIn(statement))) underWay.set(id, (underWay.get(id) ?? 0) + 1);
      most = Math.max(most, ...underWay.values());
    };
    writer.answered = (statement) => {
      for (const id of new Set(idsIn(statement))) underWay.set(id, (underWay.get(id) ?? 0) - 1);
    };
    const all: Promise<unknown>[] = [];
    for (let seq = 0; seq < 60; seq++) {
      for (const ownership of ownerships) all.push(writer.store.checkpoint(ownership, step(seq)));
      await new Promise(setImmediate);
    }
    await Promise.all(all);
    expect(most).toBe(1);
    for (const { workflowId } of ownerships) {
      expect((await stepsOf(workflowId)).map(({ seq }) => seq)).toEqual(Array.from({ length: 60 }, (_, seq) => seq));
    }
  });

  test('start, steps and outcome of one workflow are never reordered', async () => {
    const ownership = await writer.started();
    const done: string[] = [];
    const note = (label: string) => (answer: { kind: string }) => done.push(`${label} ${answer.kind}`);
    await Promise.all([
      writer.store.checkpoint(ownership, step(0)).then(note('step')),
      writer.store
        .recordIntent(ownership, { seq: 1, name: 'sleep', kind: 'sleep', sleep: { ms: 5 } })
        .then(note('intent')),
      writer.store.checkpoint(ownership, step(1)).then(note('step')),
      writer.store.complete(ownership, SUCCESS).then(note('outcome')),
    ]);
    expect(done).toEqual(['step written', 'intent written', 'step written', 'outcome written']);
  });

  test('a batch has no more rows than the cap', async () => {
    const ownerships = await writer.startedMany(3);
    const all = Array.from({ length: 1_300 }, (_, index) =>
      writer.store.checkpoint(ownerships[index % 3] as Ownership, step(Math.floor(index / 3))),
    );
    expect(new Set((await Promise.all(all)).map(({ kind }) => kind))).toEqual(new Set(['written']));
    const rows = writer.writes.map((statement) => idsIn(statement).length);
    expect(Math.max(...rows)).toBe(MAX_BATCH_ROWS);
    expect(rows.reduce((sum, count) => sum + count)).toBe(1_300);
  });

  test('C52 a batch has no more bytes than the cap, in whatever script, and a larger item goes alone', async () => {
    const ownerships = await writer.startedMany(12);
    const output = (index: number): string => JSON.stringify('中'.repeat(index === 5 ? 2_000_000 : 350_000));
    const answers = await Promise.all(
      ownerships.map((ownership, index) => writer.store.checkpoint(ownership, step(0, { output: output(index) }))),
    );
    expect(answers).toEqual(ownerships.map(() => WRITTEN));
    for (const { name, parameters } of writer.writes) {
      const outputs = (name === 'holdfast_checkpoint_one' ? [parameters[7]] : parameters[8]) as string[];
      const bytes = outputs.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      if (outputs.length > 1) expect(bytes).toBeLessThanOrEqual(MAX_BATCH_BYTES);
    }
    expect(writer.writes.some(({ name }) => name === 'holdfast_checkpoint_one')).toBe(true);
  });
});

describe('an item that the database refuses', () => {
  const NUL = '"\u0000"';
  const poisons: readonly {
    readonly label: string;
    readonly write: (ownership: Ownership) => Promise<{ readonly kind: string }>;
  }[] = [
    {
      label: 'a start with a text that PostgreSQL cannot hold',
      write: () => writer.store.start(writer.startRequest({ input: NUL })),
    },
    {
      label: 'a start that breaks a CHECK',
      write: () => writer.store.start(writer.startRequest({ workflowId: 'x'.repeat(600) })),
    },
    {
      label: 'a start with attributes that are no JSON',
      write: () => writer.store.start(writer.startRequest({ attributes: '{' })),
    },
    {
      label: 'a checkpoint with a text that PostgreSQL cannot hold',
      write: (ownership) => writer.store.checkpoint(ownership, step(0, { output: NUL })),
    },
    {
      label: 'a checkpoint that breaks a CHECK',
      write: (ownership) => writer.store.checkpoint(ownership, step(0, { output: null })),
    },
    {
      label: 'a checkpoint with a number out of range',
      write: (ownership) => writer.store.checkpoint(ownership, step(2 ** 31)),
    },
    {
      label: 'an outcome with a text that PostgreSQL cannot hold',
      write: (ownership) => writer.store.complete(ownership, { ...SUCCESS, output: NUL }),
    },
    {
      label: 'an outcome that breaks a CHECK',
      write: (ownership) => writer.store.complete(ownership, { ...SUCCESS, error: '"both"' }),
    },
    {
      label: 'a sleep without end',
      write: (ownership) =>
        writer.store.recordIntent(ownership, {
          seq: 0,
          name: 'sleep',
          kind: 'sleep',
          sleep: { ms: Infinity },
        }),
    },
    {
      label: 'a child with a text that PostgreSQL cannot hold',
      write: (ownership) =>
        writer.store.recordIntent(ownership, {
          seq: 0,
          name: 'c',
          kind: 'workflow',
          child: child({ input: NUL }),
        }),
    },
    {
      label: 'a child that breaks a CHECK',
      write: (ownership) =>
        writer.store.recordIntent(ownership, {
          seq: 0,
          name: 'c',
          kind: 'workflow',
          child: child({ workflowId: 'x'.repeat(600) }),
        }),
    },
  ];

  test.each(poisons)('C41 $label fails alone, and its neighbours of all kinds are written', async ({ write }) => {
    const [mine, ...ownerships] = (await writer.startedMany(25)) as [Ownership, ...Ownership[]];
    const refused = write(mine);
    const neighbours = ownerships.map(async (ownership, index) => {
      switch (index % 4) {
        case 0:
          return writer.store.checkpoint(ownership, step(0));
        case 1:
          return writer.store.complete(ownership, SUCCESS);
        case 2:
          return writer.store.recordIntent(ownership, { seq: 0, name: 'sleep', kind: 'sleep', sleep: { ms: 1 } });
        default:
          return writer.store.start(writer.startRequest());
      }
    });
    expect(await refused).toMatchObject({ kind: 'refused', error: { code: 'DATABASE_ERROR' } });
    const kinds = (await Promise.all(neighbours)).map(({ kind }) => kind);
    expect(kinds).toEqual(ownerships.map((_, index) => (index % 4 === 3 ? 'started' : 'written')));
  });

  test('among checkpoints of one workflow only the bad one fails, and the versions have no gap', async () => {
    const ownership = await writer.started();
    const outputs = ['1', NUL, '3', '4'];
    const answers = await Promise.all(
      outputs.map((output, seq) => writer.store.checkpoint(ownership, step(seq, { output }))),
    );
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'refused', 'written', 'written']);
    expect(await stepsOf(ownership.workflowId)).toEqual([
      { seq: 0, version: 2 },
      { seq: 2, version: 3 },
      { seq: 3, version: 4 },
    ]);
  });

  test('the others of its workflow keep their order when the row is locked at that moment', async () => {
    const ownership = await writer.started();
    const { workflowId } = ownership;
    let lock: Awaited<ReturnType<typeof lockRow>> | undefined;
    let tries = 0;
    writer.tap = async (statement) => {
      if (!isWrite(statement)) return;
      // The batch has failed, and each goes by itself from here on. The first one meets the lock; the next must not
      // profit from its being gone.
      if (++tries === 2) lock = await lockRow(workflowId);
      if (tries === 3) await lock?.release();
    };
    const answers = await Promise.all(
      ['1', NUL, '3', '4'].map((output, seq) => writer.store.checkpoint(ownership, step(seq, { output }))),
    );
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'refused', 'written', 'written']);
    expect((await stepsOf(workflowId)).map(({ seq }) => seq)).toEqual([0, 2, 3]);
  });
});

describe('a row that somebody holds', () => {
  test('is skipped, its neighbours go on, and it is written when it is free', async () => {
    const ownerships = await writer.startedMany(10);
    const held = ownerships[4] as Ownership;
    const lock = await lockRow(held.workflowId);
    let isThrough = false;
    const answers = ownerships.map((ownership) => writer.store.checkpoint(ownership, step(0)));
    void answers[4]?.then(() => (isThrough = true));
    const others = answers.filter((_, index) => index !== 4);
    expect(await Promise.all(others)).toEqual(others.map(() => WRITTEN));
    // And those that come later are not held up either.
    expect(await writer.store.checkpoint(ownerships[5] as Ownership, step(1))).toEqual(WRITTEN);
    expect(isThrough).toBe(false);
    await lock.release();
    expect(await answers[4]).toEqual(WRITTEN);
  });

  test.each(['complete', 'intent', 'release'] as const)('%s waits for it without holding anybody up', async (kind) => {
    const [held, free] = (await writer.startedMany(2)) as [Ownership, Ownership];
    const lock = await lockRow(held.workflowId);
    const answer: Promise<{ kind: string }> =
      kind === 'complete'
        ? writer.store.complete(held, SUCCESS)
        : kind === 'intent'
          ? writer.store.recordIntent(held, { seq: 0, name: 's', kind: 'sleep', sleep: { ms: 1 } })
          : writer.store.release(held, { to: 'ENQUEUED', unspendAttempt: false });
    expect(await writer.store.complete(free, SUCCESS)).toEqual(WRITTEN);
    await lock.release();
    expect(await answer).toMatchObject({ kind: 'written' });
  });

  test('an ID that an open transaction inserts holds up its own start only, and is answered when that is over', async () => {
    const ownerships = await writer.startedMany(12);
    const [kept, dropped] = [writer.startRequest(), writer.startRequest()];
    const holders = [await bench.session(), await bench.session()] as const;
    for (const [index, { workflowId }] of [kept, dropped].entries()) {
      await holders[index]?.ask('BEGIN');
      await start((holders[index] as Session).ask, { id: workflowId, executor: writer.executor.executorId });
    }
    const [answerKept, answerDropped] = [writer.store.start(kept), writer.store.start(dropped)];
    const rounds: Promise<unknown>[] = [];
    for (let seq = 0; seq < 5; seq++) {
      rounds.push(...ownerships.map((ownership) => writer.store.checkpoint(ownership, step(seq))));
      rounds.push(...Array.from({ length: 5 }, () => writer.store.start(writer.startRequest())));
      await Promise.all(rounds);
    }
    expect(await Promise.race([answerKept, answerDropped, Promise.resolve('waiting')])).toBe('waiting');
    await holders[0].ask('COMMIT');
    await holders[1].ask('ROLLBACK');
    expect(await answerKept).toMatchObject({ kind: 'exists', name: 'flow' });
    expect(await answerDropped).toMatchObject({ kind: 'started' });
    await Promise.all(holders.map((holder) => holder.end()));
  });

  test('a child whose ID an open transaction inserts holds up its own parent only', async () => {
    const [parent, ...others] = (await writer.startedMany(6)) as [Ownership, ...Ownership[]];
    const holder = await bench.session();
    const kid = child();
    await holder.ask('BEGIN');
    await start(holder.ask, { id: kid.workflowId, name: kid.name, executor: writer.executor.executorId });
    const answer = writer.store.recordIntent(parent, { seq: 0, name: 'c', kind: 'workflow', child: kid });
    const kinds = await Promise.all(
      others.map((ownership) =>
        writer.store.recordIntent(ownership, { seq: 0, name: 'c', kind: 'workflow', child: child() }),
      ),
    );
    expect(kinds).toEqual(others.map(() => ({ kind: 'written', remainingMs: null, child: 'created' })));
    await holder.ask('COMMIT');
    expect(await answer).toEqual({ kind: 'written', remainingMs: null, child: 'attached' });
    await holder.end();
  });
});

describe('the failure table', () => {
  const CONFLICT_GAPS_MS = [0, 10, 20, 40, 1_000];

  test.each(['checkpoint', 'complete', 'intent', 'release'] as const)(
    '%s follows a version that moved on under its token',
    async (kind) => {
      const ownership = await writer.started();
      for (let times = 0; times < 3; times++) await bump(ask, ownership.workflowId);
      expect(await write(kind, ownership)).toMatchObject({ kind: 'written' });
      expect(ownership.recordVersion).toBe(5);
    },
  );

  test.each(['checkpoint', 'complete', 'intent', 'release'] as const)(
    '%s is tried five times more, after 0, 10, 20, 40 ms and 1 s, and then answered with conflict',
    async (kind) => {
      const ownership = await writer.started();
      const times: number[] = [];
      writer.tap = async (statement) => {
        if (!isWrite(statement) && statement.name !== 'holdfast_release') return;
        times.push(performance.now());
        await bump(ask, ownership.workflowId);
      };
      expect(await write(kind, ownership)).toEqual({ kind: 'conflict' });
      const gaps = times.slice(1).map((time, index) => time - (times[index] as number));
      expect(gaps).toHaveLength(CONFLICT_GAPS_MS.length);
      // Timers may fire up to a millisecond early.
      for (const [index, gap] of gaps.entries())
        expect(gap).toBeGreaterThanOrEqual((CONFLICT_GAPS_MS[index] as number) - 2);
      expect(await stepsOf(ownership.workflowId)).toEqual([]);
    },
  );

  test.each(['checkpoint', 'complete', 'intent', 'release'] as const)(
    '%s is answered with lost and missing',
    async (kind) => {
      const [lost, missing] = (await writer.startedMany(2)) as [Ownership, Ownership];
      await cancel(ask, lost.workflowId);
      await ask(`SELECT @delete_workflow($1, gen_random_uuid(), 'somebody', NULL, true, '"gone"')`, [
        missing.workflowId,
      ]);
      expect(await write(kind, lost)).toEqual({ kind: 'lost' });
      expect(await write(kind, missing)).toEqual({ kind: 'missing' });
    },
  );

  test('a number that has a result already is nondeterminism, whether the version moved on or not', async () => {
    const ownership = await writer.started();
    const stale = { ...ownership };
    await writer.store.checkpoint(ownership, step(0, { name: 'charge' }));
    expect(await writer.store.checkpoint(stale, step(0))).toEqual({ kind: 'nondeterminism', found: 'step charge' });
    expect(await writer.store.checkpoint(ownership, step(0))).toMatchObject({ kind: 'nondeterminism' });
    // In company, too, and those behind it are written.
    const both = [writer.store.checkpoint(ownership, step(0)), writer.store.checkpoint(ownership, step(1))];
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['nondeterminism', 'written']);
  });

  test('several checkpoints of one workflow that meet another version are all written, in order', async () => {
    const ownership = await writer.started();
    await bump(ask, ownership.workflowId);
    const answers = await Promise.all([0, 1, 2].map((seq) => writer.store.checkpoint(ownership, step(seq))));
    expect(answers).toEqual([WRITTEN, WRITTEN, WRITTEN]);
    expect(await stepsOf(ownership.workflowId)).toEqual([
      { seq: 0, version: 3 },
      { seq: 1, version: 4 },
      { seq: 2, version: 5 },
    ]);
  });

  test('C8 twenty starts of one ID at once are one workflow', async () => {
    const workflowId = `w-${randomUUID()}`;
    const requests: StartRequest[] = Array.from({ length: 20 }, () => writer.startRequest({ workflowId }));
    const kinds = (await Promise.all(requests.map((request) => writer.store.start(request)))).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'started')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'exists')).toHaveLength(19);
  });

  async function write(
    kind: 'checkpoint' | 'complete' | 'intent' | 'release',
    ownership: Ownership,
  ): Promise<{ readonly kind: string }> {
    switch (kind) {
      case 'checkpoint':
        return writer.store.checkpoint(ownership, step(0));
      case 'complete':
        return writer.store.complete(ownership, SUCCESS);
      case 'intent':
        return writer.store.recordIntent(ownership, { seq: 0, name: 'sleep', kind: 'sleep', sleep: { ms: 1 } });
      case 'release':
        return writer.store.release(ownership, { to: 'DELAYED', wakeInMs: 1_000, unspendAttempt: false });
    }
  }
});

describe('two executions of one workflow in one process', () => {
  /** A workflow whose first execution does not know yet that a second one in the same process took over. */
  async function takenOver(): Promise<{ zombie: Ownership; owner: Ownership }> {
    const zombie = await writer.started();
    await writer.store.release({ ...zombie }, { to: 'ENQUEUED', unspendAttempt: false });
    const { workflows } = await writer.store.claim({
      executor: writer.executor,
      appVersion: 'v1',
      names: ['flow'],
      limit: 1,
      only: [zombie.workflowId],
      deadLetterError: '""',
      turns: null,
    });
    const [claimed] = workflows;
    if (claimed === undefined) throw new Error('Not claimed.');
    writer.sent.length = 0;
    return { zombie, owner: claimed.ownership };
  }

  test('C19 an old execution’s step is refused even when it is sent together with the owner’s', async () => {
    const { zombie, owner } = await takenOver();
    zombie.recordVersion = owner.recordVersion;
    const answers = await Promise.all([
      writer.store.checkpoint(owner, step(0)),
      writer.store.checkpoint(zombie, step(1)),
      writer.store.checkpoint(owner, step(2)),
      writer.store.checkpoint(zombie, step(3)),
    ]);
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'lost', 'written', 'lost']);
    expect((await stepsOf(owner.workflowId)).map(({ seq }) => seq)).toEqual([0, 2]);
  });

  test('C16 an old execution’s write that hangs does not hold up the owner', async () => {
    const { zombie, owner } = await takenOver();
    let letGo: () => void = () => undefined;
    const hanging = new Promise<void>((resolve) => (letGo = resolve));
    writer.tap = (statement) => (statement.parameters.flat().includes(zombie.token) ? hanging : undefined);
    const late = writer.store.complete(zombie, { ...SUCCESS, output: '"late"' });
    await until('the late write is under way', () => writer.writes.length > 0 || undefined);
    expect(await writer.store.checkpoint(owner, step(0))).toEqual(WRITTEN);
    expect(await writer.store.complete(owner, SUCCESS)).toEqual(WRITTEN);
    letGo();
    expect(await late).toEqual({ kind: 'lost' });
    expect(await writer.store.readOutcomes([owner.workflowId])).toMatchObject([{ output: '"result"' }]);
  });
});
