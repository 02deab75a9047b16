import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Ownership, WriteAnswer } from '../../../src/store/store.js';
import { BY, child, enqueued, stepRecord, type Bench } from './bench.js';

/** What every write of an execution promises. */
export function describeWrites(bench: () => Bench): void {
  test('a start is owned by its starter from its first version on', async () => {
    const ownership = await bench().start('w', { input: '[1]', attributes: '{"a": 1}', timeoutMs: 5_000 });
    expect(ownership).toMatchObject({ workflowId: 'w', epoch: 1, recordVersion: 1 });
    const record = await bench().look('w');
    expect(record).toMatchObject({ status: 'PENDING', executorId: 'one', attempts: 1, payload: { input: '[1]' } });
    expect(record.deadline).toEqual(new Date(bench().bed.now() + 5_000));
    expect(await bench().endsOf('w')).toEqual([null]);
  });

  test('of two starts with one ID the second is told whose it is, and writes nothing', async () => {
    const ownership = await bench().start('w', { input: '[1]' });
    expect(await bench().tryStart('w', { name: 'another', input: '[2]' })).toEqual({
      kind: 'exists',
      name: 'flow',
      status: 'PENDING',
    });
    await bench().end(ownership);
    expect(await bench().tryStart('w')).toEqual({ kind: 'exists', name: 'flow', status: 'SUCCESS' });
    expect((await bench().look('w')).payload).toMatchObject({ input: '[1]' });
  });

  test('an ID that the database would not take is refused, and takes nothing down with it', async () => {
    const { bed } = bench();
    const tooLong = 'x'.repeat(513);
    const [refused, started] = await Promise.all([bench().tryStart(tooLong), bench().tryStart('w')]);
    expect(refused.kind).toBe('refused');
    expect(started.kind).toBe('started');
    const ownership = await bench().start('parent');
    const intent = { seq: 0, name: 'flow', kind: 'workflow', child: child(tooLong) } as const;
    expect((await bed.store.recordIntent(ownership, intent)).kind).toBe('refused');
    expect((await bench().enqueue(tooLong)).kind).toBe('refused');
    expect(await bench().step(ownership, 0)).toEqual({ kind: 'written' });
  });

  test('results that are written at once are recorded in the order of the calls', async () => {
    const ownership = await bench().start('w');
    const answers = await Promise.all([3, 1, 0, 2].map((seq) => bench().step(ownership, seq)));
    expect(answers).toEqual(Array(4).fill({ kind: 'written' }));
    expect(ownership.recordVersion).toBe(5);
    await bench().giveBack(ownership);
    const { workflows } = await bench().claim();
    expect(workflows[0]?.history.map(({ seq, recordVersion }) => [seq, recordVersion])).toEqual([
      [3, 2],
      [1, 3],
      [0, 4],
      [2, 5],
    ]);
  });

  test('a number that is used twice is nondeterminism, and its first result stays', async () => {
    const ownership = await bench().start('w');
    await bench().step(ownership, 0, { name: 'first', output: '"a"' });
    expect(await bench().step(ownership, 0, { name: 'second' })).toMatchObject({ kind: 'nondeterminism' });
    expect(await bench().step(ownership, 1)).toEqual({ kind: 'written' });
    expect(await bench().stepsOf('w')).toEqual(['0 first', '1 step']);
  });

  test('a result is either an output or an error, never both or neither', async () => {
    const ownership = await bench().start('w');
    expect((await bench().step(ownership, 0, { error: '"e"' })).kind).toBe('refused');
    expect((await bench().step(ownership, 0, { output: null })).kind).toBe('refused');
    expect(await bench().stepsOf('w')).toEqual([]);
  });

  test('a write that meets another version under its own token follows it', async () => {
    const ownership = await bench().start('w');
    await bench().bed.admin.prioritize('w', BY, 7);
    expect(await bench().step(ownership, 0)).toEqual({ kind: 'written' });
    await bench().bed.store.markStuck(ownership, 'slow');
    expect(await bench().end(ownership)).toEqual({ kind: 'written' });
    expect(bench().bed.store.counters.versionConflicts).toBeGreaterThanOrEqual(2);
  });

  const writes: readonly [
    what: string,
    write: (bench: Bench, ownership: Ownership) => Promise<{ readonly kind: string }>,
  ][] = [
    ['checkpoint', (b, o) => b.step(o, 9)],
    ['recordIntent', (b, o) => b.bed.store.recordIntent(o, { seq: 9, name: 's', kind: 'sleep', sleep: { ms: 1 } })],
    [
      'recordIntent with a child',
      (b, o) => b.bed.store.recordIntent(o, { seq: 9, name: 'flow', kind: 'workflow', child: child('born') }),
    ],
    ['markUnknown', (b, o) => b.bed.store.markUnknown(o, { seq: 9, name: 'charge', attempts: 1 })],
    [
      'recordEnqueue',
      (b, o) =>
        b.bed.store.recordEnqueue(o, {
          seq: 9,
          name: 'flow',
          child: { ...enqueued('born'), onParentCancel: 'cancel' },
        }),
    ],
    ['receive', (b, o) => b.bed.store.receive(o, { seq: 9, topic: 'news', otherwise: 'null', elapsedMs: 0 })],
    [
      'recordSend',
      (b, o) =>
        b.bed.store.recordSend(o, {
          seq: 9,
          name: 'send',
          receiver: 'other',
          topic: 'news',
          payload: '1',
          idempotencyKey: null,
          output: 'null',
          elapsedMs: 0,
        }),
    ],
    [
      'recordEvent',
      (b, o) => b.bed.store.recordEvent(o, { seq: 9, key: 'e', value: '1', output: 'null', elapsedMs: 0 }),
    ],
    [
      'writeStream',
      (b, o) =>
        b.bed.store.writeStream(o, {
          stream: 's',
          value: '1',
          seq: 9,
          by: { kind: 'attempt', attempt: 1, oncePlace: null },
        }),
    ],
    ['complete', (b, o): Promise<WriteAnswer> => b.end(o)],
    ['release', (b, o) => b.giveBack(o)],
    ['continueAsNew', (b, o) => b.bed.store.continueAsNew(o, { input: '[2]', firstSeq: 1, unreceived: [] })],
    ['suspend', (b, o) => b.bed.store.suspend(o, [{ kind: 'message', topic: 'news' }])],
  ];

  test.each(writes)('%s by an execution that lost its ownership changes nothing, ever', async (_, write) => {
    const zombie = await bench().start('w');
    await bench().start('other');
    await bench().outlive(bench().two);
    await bench().claim({ executor: bench().two, only: ['w'] });
    const before = await bench().look('w');
    expect(await write(bench(), zombie)).toEqual({ kind: 'lost' });
    expect(await bench().look('w')).toEqual(before);
    expect(await bench().stepsOf('w')).toEqual([]);
    expect(await bench().bed.admin.getWorkflow('born', { payload: false })).toBeNull();
    expect(await bench().bed.store.findMessages([{ workflowId: 'other', topic: 'news' }])).toEqual([false]);
  });

  test.each(writes)('%s to a workflow that is gone says so', async (_, write) => {
    const ownership = await bench().start('w');
    await bench().bed.admin.delete(['w'], BY, { force: true, childError: '"gone"' });
    expect(await write(bench(), ownership)).toEqual({ kind: 'missing' });
  });

  test('whoever lost the token is not the owner', async () => {
    const ownership = await bench().start('w');
    const { store } = bench().bed;
    expect(await store.verifyOwnership(ownership)).toBe(true);
    expect(await store.verifyOwnership({ ...ownership, token: randomUUID() })).toBe(false);
    await bench().end(ownership);
    expect(await store.verifyOwnership(ownership)).toBe(false);
    expect(await store.verifyOwnership({ ...ownership, workflowId: 'none' })).toBe(false);
  });

  test('an outcome is recorded once, and read by all; who has none is not mentioned', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    await bench().start('busy');
    const [first, second] = await Promise.all([bench().end(ownership, '1'), bench().end(ownership, '2')]);
    expect([first.kind, second.kind]).toEqual(['written', 'lost']);
    expect(await store.readOutcomes(['w', 'busy', 'none'])).toEqual([
      { kind: 'outcome', workflowId: 'w', status: 'SUCCESS', output: '1', error: null },
      { kind: 'missing', workflowId: 'none' },
    ]);
    expect(await bench().endsOf('w')).toEqual(['completed']);
  });

  test('an outcome is an output exactly when it is a success', async () => {
    const ownership = await bench().start('w');
    const { store } = bench().bed;
    const outcome = { status: 'ERROR', output: '1', error: null, attention: null } as const;
    expect((await store.complete(ownership, outcome)).kind).toBe('refused');
    expect(await bench().statusOf('w')).toBe('PENDING');
  });

  test('a child comes to be with the record of it, owned by its parent’s executor', async () => {
    const { store } = bench().bed;
    const parent = await bench().start('parent');
    const born = child('born', { timeoutMs: 1_000 });
    const intent = { seq: 0, name: 'flow', kind: 'workflow', child: born } as const;
    expect(await store.recordIntent(parent, intent)).toMatchObject({ kind: 'written', child: 'created' });
    expect(await bench().look('born')).toMatchObject({
      status: 'PENDING',
      executorId: 'one',
      appVersion: 'v1',
      parent: { workflowId: 'parent', seq: 0, onParentCancel: 'cancel' },
    });
    const again = { ...intent, seq: 1, child: child('born') };
    expect(await store.recordIntent(parent, again)).toMatchObject({ kind: 'written', child: 'attached' });
    const another = { ...intent, seq: 2, child: child('born', { name: 'another' }) };
    expect(await store.recordIntent(parent, another)).toEqual({ kind: 'child-name-taken', name: 'flow' });
    expect(await bench().stepsOf('parent')).toEqual(['!0 flow', '!1 flow']);
  });

  test('how long a sleep has to go is told when it is recorded, and again when it is claimed', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    const sleep = (seq: number, until: { readonly ms: number } | { readonly untilMs: number }) =>
      store.recordIntent(ownership, { seq, name: 'sleep', kind: 'sleep', sleep: until });
    expect(await sleep(0, { ms: 900 })).toMatchObject({ remainingMs: 900 });
    expect(await sleep(1, { untilMs: bench().bed.now() + 500 })).toMatchObject({ remainingMs: 500 });
    await bench().step(ownership, 1, { name: 'sleep', kind: 'sleep' });
    await bench().giveBack(ownership);
    await bench().bed.advance(300);
    const { workflows } = await bench().claim();
    const entry = { name: 'sleep', output: null, error: null, childId: null };
    expect(workflows[0]?.history).toMatchObject([
      { ...entry, seq: 0, complete: false, remainingMs: 600 },
      { ...entry, output: '1', seq: 1, complete: true, remainingMs: null },
    ]);
  });

  test('that nobody knows what became of a step stays on record; a fork runs the step itself', async () => {
    const { store, admin } = bench().bed;
    const ownership = await bench().start('w');
    await store.recordIntent(ownership, { seq: 0, name: 'charge', kind: 'step' });
    expect(await store.markUnknown(ownership, { seq: 0, name: 'charge', attempts: 2 })).toEqual({ kind: 'written' });
    expect(await store.markUnknown(ownership, { seq: 1, name: 'ship', attempts: 1 })).toEqual({ kind: 'written' });
    await admin.fork('w', BY, { fromStep: 2, workflowId: 'fork', appVersion: null });
    await bench().giveBack(ownership);
    const { workflows } = await bench().claim({ only: ['w'] });
    const history = workflows[0]?.history.map(({ name, complete, attempts }) => [name, complete, attempts]);
    expect(history).toEqual([
      ['charge', false, 2],
      ['ship', false, 1],
    ]);
    expect((await bench().claim()).workflows).toMatchObject([{ ownership: { workflowId: 'fork' }, history: [] }]);
  });

  test('a workflow is given back for now, for later, or to a person', async () => {
    const { store } = bench().bed;
    const [now, later, blocked] = [
      await bench().start('now'),
      await bench().start('later'),
      await bench().start('blocked'),
    ];
    await bench().giveBack(now);
    await store.release(later, { to: 'DELAYED', wakeInMs: 1_000, unspendAttempt: true });
    await store.release(blocked, { to: 'BLOCKED', attention: 'NONDETERMINISM', detail: 'why' });
    expect(await bench().look('blocked')).toMatchObject({
      status: 'BLOCKED',
      attention: { code: 'NONDETERMINISM', detail: 'why' },
    });
    expect(await bench().claimed()).toEqual(['now']);
    await bench().bed.advance(999);
    expect(await bench().claimed()).toEqual([]);
    await bench().bed.advance(1);
    const { workflows } = await bench().claim();
    expect(workflows[0]).toMatchObject({
      ownership: { workflowId: 'later', epoch: 2 },
      attempts: 1,
      reason: 'claimed',
    });
    expect(await bench().endsOf('later')).toEqual(['released', null]);
  });

  test('continue as new: the history goes, numbers go on, the attempts begin anew, any app version may go on', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w', { maxAttempts: 1 });
    await bench().step(ownership, 0);
    await bench().send('w', 'news', '"taken"');
    await bench().send('w', 'news', '"waiting"');
    await store.receive(ownership, { seq: 1, topic: 'news', otherwise: null, elapsedMs: 0 });
    const run = { input: '["next"]', firstSeq: 2, unreceived: [1] };
    expect(await store.continueAsNew(ownership, run)).toEqual({ kind: 'written' });
    expect(await bench().endsOf('w')).toEqual(['continued']);
    const next = await bench().register('three', 'v2');
    const { workflows } = await bench().claim({ executor: next, appVersion: 'v2' });
    expect(workflows).toMatchObject([{ input: '["next"]', firstSeq: 2, history: [], attempts: 1, reason: 'claimed' }]);
    const [claimed] = workflows;
    if (claimed === undefined) throw new Error('It is claimed.');
    const receive = (seq: number) =>
      store.receive(claimed.ownership, { seq, topic: 'news', otherwise: null, elapsedMs: 0 });
    expect(await receive(2)).toEqual({ kind: 'received', payload: '"taken"' });
    expect(await receive(3)).toEqual({ kind: 'received', payload: '"waiting"' });
    expect((await bench().look('w')).appVersion).toBe('v2');
  });

  test('a workflow that makes no progress is listed, and ended by whoever owns it only', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    await store.markStuck(ownership, 'for an hour');
    expect((await bench().look('w')).attention).toEqual({ code: 'STUCK', detail: 'for an hour' });
    await store.markStuck(ownership, null);
    expect((await bench().look('w')).attention).toBeNull();
    await store.failStuck({ ...ownership, token: randomUUID() }, '"stuck"');
    expect(await bench().statusOf('w')).toBe('PENDING');
    await store.failStuck(ownership, '"stuck"');
    expect(await bench().look('w')).toMatchObject({
      status: 'ERROR',
      attention: { code: 'STUCK' },
      payload: { error: '"stuck"' },
    });
    expect(await bench().endsOf('w')).toEqual(['stuck']);
    expect(await store.checkpoint(ownership, stepRecord(0))).toEqual({ kind: 'lost' });
  });
}
