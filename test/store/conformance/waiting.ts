import { expect, test } from 'vitest';
import type { Ownership, SuspendAnswer, Wait } from '../../../src/store/store.js';
import { BY, type Bench } from './bench.js';

/** Messages, events, and workflows that are unloaded while they wait. */
export function describeWaiting(bench: () => Bench): void {
  const news: Wait = { kind: 'message', topic: 'news' };
  const suspend = (ownership: Ownership, ...waits: readonly Wait[]): Promise<SuspendAnswer> =>
    bench().bed.store.suspend(ownership, waits);
  const receive = (ownership: Ownership, seq: number, otherwise: string | null = null) =>
    bench().bed.store.receive(ownership, { seq, topic: 'news', otherwise, elapsedMs: 0 });
  const setEvent = (ownership: Ownership, seq: number, value: string) =>
    bench().bed.store.recordEvent(ownership, { seq, key: 'state', value, output: 'null', elapsedMs: 0 });

  test('messages of one topic are received once each, in the order of sending', async () => {
    const ownership = await bench().start('w');
    for (const payload of ['1', '2', '3']) await bench().send('w', 'news', payload);
    await bench().send('w', 'other', '0');
    expect(
      await bench().bed.store.findMessages([
        { workflowId: 'w', topic: 'news' },
        { workflowId: 'w', topic: 'none' },
      ]),
    ).toEqual([true, false]);
    const received = [await receive(ownership, 0), await receive(ownership, 1), await receive(ownership, 2)];
    expect(received.map((answer) => 'payload' in answer && answer.payload)).toEqual(['1', '2', '3']);
    expect(await receive(ownership, 3)).toEqual({ kind: 'empty' });
    expect(await receive(ownership, 3, '"none"'), 'the time is up').toEqual({ kind: 'received', payload: '"none"' });
    expect(await bench().stepsOf('w')).toEqual(['0 news', '1 news', '2 news', '3 news']);
  });

  test('a message with an idempotency key is there once, whatever it says the second time', async () => {
    const ownership = await bench().start('w');
    expect(await bench().send('w', 'news', '1', 'key')).toBe('sent');
    expect(await bench().send('w', 'news', '2', 'key')).toBe('sent');
    await receive(ownership, 0);
    expect(await bench().send('w', 'news', '3', 'key'), 'also when it has been received').toBe('sent');
    expect(await receive(ownership, 1)).toEqual({ kind: 'empty' });
  });

  test('nobody sends to a workflow that is not there, or has ended', async () => {
    const { store } = bench().bed;
    const [sender, ended] = [await bench().start('sender'), await bench().start('ended')];
    await bench().send('ended', 'news', '1', 'key');
    await bench().end(ended);
    expect(await bench().send('none', 'news', '1')).toBe('no-receiver');
    expect(await bench().send('ended', 'news', '1')).toBe('receiver-ended');
    expect(await bench().send('ended', 'news', '1', 'key'), 'it is there').toBe('sent');
    const record = {
      seq: 0,
      name: 'send',
      topic: 'news',
      payload: '1',
      idempotencyKey: null,
      output: 'null',
      elapsedMs: 0,
    };
    expect(await store.recordSend(sender, { ...record, receiver: 'none' })).toEqual({ kind: 'no-receiver' });
    expect(await store.recordSend(sender, { ...record, receiver: 'ended' })).toEqual({
      kind: 'receiver-ended',
      status: 'SUCCESS',
    });
    expect(await bench().stepsOf('sender')).toEqual([]);
  });

  test('an event has the value that was set last; without one, its workflow’s end is told', async () => {
    const { store } = bench().bed;
    const read = (workflowId: string) => store.readEvents([{ workflowId, key: 'state' }]);
    const ownership = await bench().start('w');
    const silent = await bench().start('silent');
    expect(await read('w')).toEqual([undefined]);
    await setEvent(ownership, 0, '1');
    await setEvent(ownership, 1, '2');
    expect(await read('w')).toEqual([{ kind: 'set', value: '2' }]);
    await Promise.all([bench().end(ownership), bench().end(silent)]);
    expect(await read('w')).toEqual([{ kind: 'set', value: '2' }]);
    expect(await read('silent')).toEqual([{ kind: 'ended', status: 'SUCCESS' }]);
    expect(await read('none')).toEqual([{ kind: 'missing' }]);
  });

  test('a suspended workflow is claimed when its moment comes, and not before', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    await store.recordIntent(ownership, { seq: 0, name: 'sleep', kind: 'sleep', sleep: { ms: 1_000 } });
    expect(await suspend(ownership, { kind: 'timer' })).toEqual({ kind: 'suspended' });
    expect(await bench().look('w')).toMatchObject({ status: 'SUSPENDED', attempts: 0 });
    expect(await bench().claim()).toMatchObject({ workflows: [], againInMs: 1_000 });
    await bench().bed.advance(1_000);
    expect((await bench().claim()).workflows).toMatchObject([
      { attempts: 1, reason: 'claimed', history: [{ remainingMs: 0 }] },
    ]);
    expect(await bench().endsOf('w')).toEqual(['suspended', null]);
  });

  test('its deadline wakes a suspended workflow, too', async () => {
    const ownership = await bench().start('w', { timeoutMs: 700 });
    await suspend(ownership, news);
    await bench().bed.advance(700);
    expect((await bench().claim()).workflows).toMatchObject([{ deadlineInMs: 0 }]);
  });

  const receiveUpdate = async (ownership: Ownership) => {
    const { workflowId } = ownership;
    await bench().send(workflowId, 'holdfast:update:limit', '1', 'holdfast:update:1');
    await bench().bed.store.receive(ownership, {
      seq: 0,
      topic: 'holdfast:update:limit',
      otherwise: null,
      elapsedMs: 0,
    });
  };
  const continueAsNew = (ownership: Ownership, unreceived: readonly number[] = []) =>
    bench().bed.store.continueAsNew(ownership, { input: '[]', firstSeq: 2, unreceived });

  type Arrival = readonly [what: string, wait: Wait, arrive: (source: Ownership) => Promise<unknown>];
  const arrivals: readonly Arrival[] = [
    ['a message', news, () => bench().send('w', 'news', '1')],
    ['an event', { kind: 'event', workflowId: 'source', key: 'state' }, (source) => setEvent(source, 0, '1')],
    ['an outcome', { kind: 'outcome', workflowId: 'source' }, (source) => bench().end(source)],
    [
      'the end of whoever was to set an event',
      { kind: 'event', workflowId: 'source', key: 'never' },
      (source) => bench().end(source),
    ],
    [
      'a cancellation',
      { kind: 'outcome', workflowId: 'source' },
      () => bench().bed.admin.cancel(['source'], BY, { error: '"c"', children: 'cancel', compensate: false }),
    ],
    [
      'a deletion',
      { kind: 'outcome', workflowId: 'source' },
      () => bench().bed.admin.delete(['source'], BY, { force: true, childError: '"d"' }),
    ],
    [
      'a forced end',
      { kind: 'outcome', workflowId: 'source' },
      (source) => bench().bed.store.failStuck(source, '"stuck"'),
    ],
    [
      'the next run of whoever had received an update',
      { kind: 'event', workflowId: 'source', key: 'holdfast:update:1' },
      async (source) => {
        await receiveUpdate(source);
        await continueAsNew(source);
      },
    ],
  ];

  test.each(arrivals)('%s that was there before keeps its waiter from being suspended', async (_, wait, arrive) => {
    const [waiter, source] = [await bench().start('w'), await bench().start('source')];
    await arrive(source);
    expect(await suspend(waiter, wait)).toEqual({ kind: 'not-now' });
    expect(await bench().statusOf('w')).toBe('PENDING');
    expect(await bench().step(waiter, 0), 'it goes on').toEqual({ kind: 'written' });
  });

  test.each(arrivals)('%s that comes afterwards wakes its waiter', async (_, wait, arrive) => {
    const [waiter, source] = [await bench().start('w'), await bench().start('source')];
    expect(await suspend(waiter, wait)).toEqual({ kind: 'suspended' });
    expect(await bench().claimed({ only: ['w'] })).toEqual([]);
    await arrive(source);
    expect(await bench().claimed({ only: ['w'] })).toEqual(['w']);
  });

  test('an update that a run has received is answered by that run or not at all; what it has not got waits for the next', async () => {
    const read = (workflowId: string) => bench().bed.store.readEvents([{ workflowId, key: 'holdfast:update:1' }]);
    const [received, answered, unreceived] = [
      await bench().start('a'),
      await bench().start('b'),
      await bench().start('c'),
    ];
    for (const ownership of [received, answered, unreceived]) await receiveUpdate(ownership);
    const reply = { seq: 1, key: 'holdfast:update:1', value: '7', output: 'null', elapsedMs: 0 };
    await bench().bed.store.recordEvent(answered, reply);
    expect(await read('a')).toEqual([undefined]);
    await Promise.all([continueAsNew(received), continueAsNew(answered), continueAsNew(unreceived, [0])]);
    expect(await read('a')).toEqual([{ kind: 'ended', status: 'CONTINUED' }]);
    expect(await read('b')).toEqual([{ kind: 'set', value: '7' }]);
    expect(await read('c')).toEqual([undefined]);
    expect(await bench().bed.store.readEvents([{ workflowId: 'a', key: 'another' }])).toEqual([undefined]);
  });

  test('whoever waits for an update that is left behind is woken, also where the answer to another one could not be recorded at first', async () => {
    const [waiter, source] = [await bench().start('w'), await bench().start('source')];
    await receiveUpdate(source);
    await bench().send('source', 'holdfast:update:other', '1', 'holdfast:update:2');
    const other = { topic: 'holdfast:update:other', otherwise: null, elapsedMs: 0 };
    await bench().bed.store.receive(source, { ...other, seq: 1 });
    const key = 'holdfast:update:2';
    await bench().step(source, 2, { name: key, kind: 'event', output: null, error: '"cannot be stored"' });
    await bench().bed.store.recordEvent(source, { seq: 3, key, value: '"failed"', output: 'null', elapsedMs: 0 });
    await suspend(waiter, { kind: 'event', workflowId: 'source', key: 'holdfast:update:1' });
    await bench().bed.store.continueAsNew(source, { input: '[]', firstSeq: 4, unreceived: [] });
    expect(await bench().claimed({ only: ['w'] })).toEqual(['w']);
  });

  test('a run that has left no update behind wakes nobody', async () => {
    const [waiter, source] = [await bench().start('w'), await bench().start('source')];
    await suspend(waiter, { kind: 'outcome', workflowId: 'source' });
    await receive(source, 0, '"none"');
    await continueAsNew(source);
    expect(await bench().claimed({ only: ['w'] })).toEqual([]);
  });

  test('what is for somebody else wakes nobody, nor does a completion that is refused', async () => {
    const [waiter, source] = [await bench().start('w'), await bench().start('source')];
    await suspend(waiter, news, { kind: 'outcome', workflowId: 'source' });
    await bench().step(source, 0);
    expect(await bench().end({ ...source, token: '00000000-0000-4000-8000-000000000000' })).toEqual({ kind: 'lost' });
    expect(await bench().claimed({ only: ['w'] })).toEqual([]);
    await bench().send('w', 'another topic', '1');
    expect(await bench().claimed({ only: ['w'] }), 'it has to look').toEqual(['w']);
  });

  test('a dead letter is an outcome that wakes its waiter', async () => {
    const waiter = await bench().start('w');
    const source = await bench().start('source', { maxAttempts: 1 });
    await suspend(waiter, { kind: 'outcome', workflowId: 'source' });
    await bench().giveBack(source);
    expect(await bench().claimed()).toEqual([]);
    expect(await bench().statusOf('source')).toBe('DEAD_LETTER');
    expect(await bench().claimed()).toEqual(['w']);
  });

  test('a workflow that is asked something is not suspended, and is woken by the question; the first answer counts', async () => {
    const { queries } = bench().bed;
    const question = { workflowId: 'w', requestId: '00000000-0000-4000-8000-000000000001', name: 'state', args: '[]' };
    const ownership = await bench().start('w');
    expect(await queries.ask(question, 1_000)).toEqual({ kind: 'asked' });
    expect(await queries.open(bench().one)).toEqual([question]);
    expect(await queries.open(bench().two)).toEqual([]);
    expect(await suspend(ownership, news)).toEqual({ kind: 'not-now' });
    await queries.answer(question, { reply: '1', error: null });
    await queries.answer(question, { reply: '2', error: null });
    expect(await queries.readAnswers([question])).toEqual([{ kind: 'answered', reply: '1', error: null }]);
    // Its wake-up is dealt with.
    expect(await bench().claimed()).toEqual([]);
    expect(await suspend(ownership, news)).toEqual({ kind: 'suspended' });
    expect(await bench().claimed()).toEqual([]);
    await queries.ask({ ...question, requestId: '00000000-0000-4000-8000-000000000002' }, 1_000);
    expect(await bench().claimed()).toEqual(['w']);
    expect(await queries.ask({ ...question, workflowId: 'none' }, 1_000)).toEqual({ kind: 'missing' });
  });

  test('entries of a stream have offsets without a gap, and come in pages', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    const write = (seq: number, value: string) =>
      store.writeStream(ownership, { stream: 's', value, seq, by: { kind: 'stream', output: 'null', elapsedMs: 0 } });
    await Promise.all(['"a"', '"bb"', '"ccc"'].map((value, seq) => write(seq, value)));
    const page = (next: number, entries: number, bytes = 1_000) =>
      store.streams.readStream({ workflowId: 'w', stream: 's', next, lastNonce: null }, { entries, bytes });
    const values = async (...of: Parameters<typeof page>) => {
      const found = await page(...of);
      if (found.kind !== 'page') throw new Error(found.kind);
      return {
        values: found.entries.map(({ offset, value }) => [offset, value]),
        hasMore: found.hasMore,
        isOver: found.isOver,
      };
    };
    expect(await values(0, 2)).toEqual({
      values: [
        [0, '"a"'],
        [1, '"bb"'],
      ],
      hasMore: true,
      isOver: false,
    });
    expect(await values(2, 2)).toEqual({ values: [[2, '"ccc"']], hasMore: false, isOver: false });
    expect(await values(0, 9, 1), 'at least one').toEqual({ values: [[0, '"a"']], hasMore: true, isOver: false });
    const at = (next: number) => ({ workflowId: 'w', stream: 's', next, lastNonce: null });
    expect(await store.streams.changedStreams([at(2), at(3), { ...at(0), workflowId: 'none' }])).toEqual([0, 2]);
    await store.writeStream(ownership, {
      stream: 's',
      value: null,
      seq: 3,
      by: { kind: 'stream-close', output: 'null', elapsedMs: 0 },
    });
    expect(await write(4, '"late"')).toEqual({ kind: 'stream-closed' });
    expect(await values(3, 2)).toEqual({ values: [], hasMore: false, isOver: true });
    expect(await page(0, 1)).toMatchObject({ isOver: true });
    expect((await store.streams.readStream({ ...at(0), workflowId: 'none' }, { entries: 1, bytes: 1 })).kind).toBe(
      'missing',
    );
  });

  test('an attempt that writes a place of a stream again writes nothing', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    const write = (attempt: number, oncePlace: number | null, value: string) =>
      store.writeStream(ownership, { stream: 's', value, seq: 0, by: { kind: 'attempt', attempt, oncePlace } });
    expect(await write(1, 0, '1')).toEqual({ kind: 'written' });
    expect(await write(2, 0, '2')).toEqual({ kind: 'written' });
    expect(await write(2, 1, '3')).toEqual({ kind: 'written' });
    expect(await write(2, null, '4')).toEqual({ kind: 'written' });
    const found = await store.streams.readStream(
      { workflowId: 'w', stream: 's', next: 0, lastNonce: null },
      { entries: 9, bytes: 99 },
    );
    expect(found).toMatchObject({ entries: [{ value: '1', attempt: 1 }, { value: '3' }, { value: '4' }] });
  });
}
