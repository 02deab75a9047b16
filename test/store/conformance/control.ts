import { expect, test } from 'vitest';
import { BY, child, type Bench } from './bench.js';

/** What is done to workflows from outside, whoever owns them. */
export function describeControl(bench: () => Bench): void {
  const cancel = (workflowId: string, children: 'cancel' | 'keep' = 'cancel') =>
    bench().bed.admin.cancel([workflowId], BY, { error: '"cancelled"', children, compensate: false });
  const rewind = (workflowId: string, toStep: number) =>
    bench().bed.admin.rewind(workflowId, BY, { toStep, childError: '"rewound"' });
  const startChild = async (
    parent: Awaited<ReturnType<Bench['start']>>,
    seq: number,
    workflowId: string,
    close: 'cancel' | 'abandon' = 'cancel',
  ) => {
    const born = child(workflowId, { onParentCancel: close });
    await bench().bed.store.recordIntent(parent, { seq, name: 'flow', kind: 'workflow', child: born });
    return { workflowId, token: born.token, epoch: 1, recordVersion: 1 };
  };

  test('a cancelled workflow is fenced, and has its outcome; cancelled again, nothing changes', async () => {
    const ownership = await bench().start('w');
    expect(await cancel('w')).toEqual([{ kind: 'done', statusBefore: 'PENDING', statusAfter: 'CANCELLED' }]);
    expect(await bench().step(ownership, 0)).toEqual({ kind: 'lost' });
    expect(await bench().end(ownership)).toEqual({ kind: 'lost' });
    expect(await bench().bed.store.readOutcomes(['w'])).toMatchObject([{ status: 'CANCELLED', error: '"cancelled"' }]);
    expect(await cancel('w')).toEqual([{ kind: 'unchanged', status: 'CANCELLED' }]);
    expect(await cancel('none')).toEqual([{ kind: 'missing' }]);
    const audit = await bench().bed.admin.listAudit('w', { limit: 10, cursor: null });
    expect(audit.items).toMatchObject([
      { verb: 'cancel', actor: 'somebody', statusBefore: 'PENDING', statusAfter: 'CANCELLED' },
    ]);
    expect(await bench().endsOf('w')).toEqual(['cancel']);
  });

  test('answers come in the order of the IDs, and an ID that is there twice is one act', async () => {
    await bench().start('b');
    await bench().start('a');
    const answers = await bench().bed.admin.cancel(['b', 'none', 'a', 'b'], BY, {
      error: '"c"',
      children: 'cancel',
      compensate: false,
    });
    expect(answers.map(({ kind }) => kind)).toEqual(['done', 'missing', 'done', 'done']);
  });

  test('children that are to end with their parent are cancelled with it, and theirs; the others go on', async () => {
    const parent = await bench().start('parent');
    const middle = await startChild(parent, 0, 'child');
    await startChild(parent, 1, 'abandoned', 'abandon');
    await startChild(middle, 0, 'grandchild');
    await cancel('parent');
    const statuses = await Promise.all(
      ['parent', 'child', 'grandchild', 'abandoned'].map((id) => bench().statusOf(id)),
    );
    expect(statuses).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED', 'PENDING']);
    const audit = await bench().bed.admin.listAudit('grandchild', { limit: 10, cursor: null });
    expect(JSON.parse(audit.items[0]?.detail ?? '')).toEqual({ cascadedFrom: 'parent', cascadedBy: 'cancel' });
  });

  test('resumed, a parent has the children again that were cancelled with it and whose outcome it has not recorded', async () => {
    const parent = await bench().start('parent');
    await startChild(parent, 0, 'open');
    await startChild(parent, 1, 'recorded');
    await bench().step(parent, 1, { kind: 'workflow', childId: 'recorded' });
    await cancel('parent');
    expect(await bench().bed.admin.resume(['parent'], BY)).toEqual([
      { kind: 'done', statusBefore: 'CANCELLED', statusAfter: 'ENQUEUED' },
    ]);
    expect(await bench().claimed()).toEqual(['open', 'parent']);
    expect(await bench().statusOf('recorded')).toBe('CANCELLED');
  });

  test('what runs, or waits in line, is not resumed; what has ended by itself is refused', async () => {
    const { admin } = bench().bed;
    const ownership = await bench().start('w');
    expect(await admin.resume(['w'], BY)).toEqual([{ kind: 'unchanged', status: 'PENDING' }]);
    await bench().end(ownership);
    expect(await admin.resume(['w'], BY)).toEqual([
      { kind: 'refused', refusal: { kind: 'status' }, status: 'SUCCESS' },
    ]);
  });

  test('a suspended workflow that is resumed is claimed before its time, and waits for what it waited for', async () => {
    const { store, admin } = bench().bed;
    const ownership = await bench().start('w');
    await store.recordIntent(ownership, { seq: 0, name: 'sleep', kind: 'sleep', sleep: { ms: 1_000 } });
    await store.suspend(ownership, [{ kind: 'timer' }]);
    await admin.resume(['w'], BY);
    expect((await bench().claim()).workflows).toMatchObject([{ reason: 'resumed', history: [{ remainingMs: 1_000 }] }]);
  });

  test('a rewind takes back what came after the step: results, an outcome, events, messages, streams, children', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    const setEvent = (seq: number, value: string) =>
      store.recordEvent(ownership, { seq, key: 'e', value, output: 'null', elapsedMs: 0 });
    const write = (seq: number, value: string) =>
      store.writeStream(ownership, { stream: 's', value, seq, by: { kind: 'stream', output: 'null', elapsedMs: 0 } });
    await setEvent(0, '1');
    await write(1, '"kept"');
    await setEvent(2, '2');
    await write(3, '"taken back"');
    await bench().send('w', 'news', '1');
    await store.receive(ownership, { seq: 4, topic: 'news', otherwise: null, elapsedMs: 0 });
    await startChild(ownership, 5, 'child');
    const read = await store.streams.readStream(
      { workflowId: 'w', stream: 's', next: 0, lastNonce: null },
      { entries: 9, bytes: 999 },
    );
    const lastNonce = read.kind === 'page' ? (read.entries.at(-1)?.nonce ?? null) : null;
    await bench().end(ownership);

    expect(await rewind('w', 2)).toEqual({ kind: 'done', statusBefore: 'SUCCESS', statusAfter: 'ENQUEUED' });
    expect(await bench().stepsOf('w')).toEqual(['0 e', '1 s']);
    expect(await store.readOutcomes(['w'])).toEqual([]);
    expect(await store.readEvents([{ workflowId: 'w', key: 'e' }])).toEqual([{ kind: 'set', value: '1' }]);
    expect(await store.findMessages([{ workflowId: 'w', topic: 'news' }])).toEqual([true]);
    expect(await bench().look('child')).toMatchObject({ status: 'CANCELLED', payload: { error: '"rewound"' } });
    const position = { workflowId: 'w', stream: 's', next: 2, lastNonce };
    expect((await store.streams.readStream(position, { entries: 9, bytes: 999 })).kind).toBe('rewritten');
    expect(await store.streams.changedStreams([position])).toEqual([0]);
    expect((await bench().claim()).workflows).toMatchObject([
      { reason: 'resumed', attempts: 1, history: [{ seq: 0 }, { seq: 1 }] },
    ]);
  });

  test('a rewind fences whoever runs the workflow', async () => {
    const ownership = await bench().start('w');
    await bench().step(ownership, 0);
    expect(await rewind('w', 0)).toMatchObject({ kind: 'done', statusBefore: 'PENDING' });
    expect(await bench().step(ownership, 1)).toEqual({ kind: 'lost' });
    const next = await bench().take();
    expect(await bench().step(next, 0)).toEqual({ kind: 'written' });
  });

  test('there is no rewind and no fork beyond the record, or before the run', async () => {
    const { store, admin } = bench().bed;
    const ownership = await bench().start('w');
    await bench().step(ownership, 0);
    const refused = (first: number, last: number) => ({ kind: 'refused', refusal: { kind: 'step', first, last } });
    expect(await rewind('w', 2)).toMatchObject(refused(0, 1));
    expect(await admin.fork('w', BY, { fromStep: 2, workflowId: 'f', appVersion: null })).toMatchObject(refused(0, 1));
    await store.continueAsNew(ownership, { input: '[]', firstSeq: 3, unreceived: [] });
    expect(await rewind('w', 2)).toMatchObject(refused(3, 3));
    expect(await rewind('none', 0)).toEqual({ kind: 'missing' });
  });

  test('what became of a step is said by a person while nobody alive owns the workflow, and only what is not known', async () => {
    const { store, admin } = bench().bed;
    const happened = { repair: 'result', output: '"charged"', error: null, resume: true } as const;
    const repair = (seq: number) => admin.repairStep('w', BY, { ...happened, seq });
    const ownership = await bench().start('w');
    await bench().step(ownership, 0);
    await store.markUnknown(ownership, { seq: 1, name: 'charge', attempts: 1 });
    expect(await repair(1)).toMatchObject({ kind: 'refused', refusal: { kind: 'owned' } });
    await store.release(ownership, { to: 'BLOCKED', attention: 'OUTCOME_UNKNOWN', detail: 'charge' });
    expect(await repair(0)).toMatchObject({ kind: 'refused', refusal: { kind: 'recorded' } });
    expect(await repair(2)).toMatchObject({ kind: 'refused', refusal: { kind: 'unrecorded' } });
    expect(await repair(1)).toEqual({ kind: 'done', statusBefore: 'BLOCKED', statusAfter: 'ENQUEUED' });
    expect((await bench().claim()).workflows).toMatchObject([
      { history: [{ seq: 0 }, { seq: 1, output: '"charged"' }] },
    ]);
    expect((await admin.listAudit('w', { limit: 9, cursor: null })).items).toMatchObject([{ verb: 'repair' }]);
  });

  test('a fork has its source’s record up to the step, and leaves its source alone', async () => {
    const { store, admin } = bench().bed;
    const source = await bench().start('source', { input: '[7]' });
    await store.recordEvent(source, { seq: 0, key: 'e', value: '1', output: 'null', elapsedMs: 0 });
    await bench().step(source, 1, { output: '"one"' });
    await bench().step(source, 2);
    const before = await bench().look('source');
    expect(await admin.fork('source', BY, { fromStep: 2, workflowId: 'fork', appVersion: 'v9' })).toMatchObject({
      kind: 'done',
    });
    expect(await admin.fork('source', BY, { fromStep: 2, workflowId: 'fork', appVersion: null })).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'exists' },
    });
    expect(await bench().look('source')).toEqual(before);
    expect(await bench().step(source, 3)).toEqual({ kind: 'written' });
    expect(await bench().look('fork')).toMatchObject({
      status: 'ENQUEUED',
      forkedFrom: 'source',
      appVersion: 'v9',
      parent: null,
    });
    expect(await store.readEvents([{ workflowId: 'fork', key: 'e' }])).toEqual([{ kind: 'set', value: '1' }]);
    expect(await bench().claimed(), 'it has a record, of another version').toEqual([]);
    const { workflows } = await bench().claim({ appVersion: 'v9' });
    expect(workflows).toMatchObject([{ input: '[7]', history: [{ seq: 0 }, { seq: 1, output: '"one"' }] }]);
  });

  test('a fork has the events that earlier runs have set, which nothing on record has', async () => {
    const { store, admin } = bench().bed;
    let owner = await bench().start('w');
    const set = (seq: number, key: string, value: string) =>
      store.recordEvent(owner, { seq, key, value, output: 'null', elapsedMs: 0 });
    await set(0, 'e', '1');
    await set(1, 'e', '2');
    await set(2, 'other', '3');
    await store.continueAsNew(owner, { input: '[]', firstSeq: 3, unreceived: [] });
    owner = await bench().take();
    await set(3, 'e', '4');
    for (const [source, fromStep, workflowId] of [
      ['w', 3, 'from the beginning'],
      ['w', 4, 'from behind'],
      ['from behind', 3, 'fork of a fork'],
    ] as const) {
      await admin.fork(source, BY, { fromStep, workflowId, appVersion: null });
    }
    const valuesOf = async (workflowId: string): Promise<unknown> =>
      (await store.readEvents(['e', 'other'].map((key) => ({ workflowId, key })))).map((found) =>
        found?.kind === 'set' ? found.value : found,
      );
    expect(await valuesOf('from the beginning')).toEqual(['2', '3']);
    expect(await valuesOf('from behind')).toEqual(['4', '3']);
    expect(await valuesOf('fork of a fork')).toEqual(['2', '3']);
    await rewind('from behind', 3);
    expect(await valuesOf('from behind')).toEqual(['2', '3']);
  });

  test('a fork that is asked again for an update which is on its record does not get it a second time; other messages it does', async () => {
    const { store, admin } = bench().bed;
    let owner = await bench().start('source');
    const [update, news] = ['holdfast:update:u', 'news'];
    const receive = (seq: number, topic: string) => store.receive(owner, { seq, topic, otherwise: null, elapsedMs: 0 });
    const send = async (workflowId: string) => {
      for (const key of ['1', '2', '3']) await bench().send(workflowId, update, key, `holdfast:update:${key}`);
      await bench().send(workflowId, news, 'news', 'key');
    };
    await send('source');
    await receive(0, update);
    await store.continueAsNew(owner, { input: '[]', firstSeq: 1, unreceived: [] });
    owner = await bench().take();
    await receive(1, update);
    await receive(2, news);
    await receive(3, update);
    await admin.fork('source', BY, { fromStep: 3, workflowId: 'fork', appVersion: null });
    await send('fork');
    const read = (key: string) => store.readEvents([{ workflowId: 'fork', key: `holdfast:update:${key}` }]);
    expect(await read('1')).toEqual([{ kind: 'ended', status: 'CONTINUED' }]);
    expect(await read('2')).toEqual([undefined]);
    owner = await bench().take();
    expect(await receive(3, update)).toEqual({ kind: 'received', payload: '3' });
    expect(await receive(4, update)).toEqual({ kind: 'empty' });
    expect(await receive(5, news)).toEqual({ kind: 'received', payload: 'news' });
    await rewind('fork', 1);
    owner = await bench().take();
    expect(await receive(1, update)).toEqual({ kind: 'received', payload: '2' });
  });

  test('only what has ended is deleted, and not what somebody has yet to hear of; unless it is forced', async () => {
    const { admin } = bench().bed;
    const remove = (workflowId: string, force = false) =>
      admin.delete([workflowId], BY, { force, childError: '"gone"' });
    const parent = await bench().start('parent');
    const awaited = await startChild(parent, 0, 'child');
    expect(await remove('child')).toEqual([{ kind: 'refused', refusal: { kind: 'status' }, status: 'PENDING' }]);
    await bench().end(awaited);
    expect(await remove('child')).toEqual([
      { kind: 'refused', refusal: { kind: 'awaited', by: 'parent' }, status: 'SUCCESS' },
    ]);
    await bench().step(parent, 0, { kind: 'workflow', childId: 'child' });
    expect(await remove('child')).toEqual([{ kind: 'done', statusBefore: 'SUCCESS', statusAfter: null }]);
    await startChild(parent, 1, 'other');
    expect(await remove('parent', true)).toMatchObject([{ kind: 'done' }]);
    expect(await bench().look('other')).toMatchObject({ status: 'CANCELLED', payload: { error: '"gone"' } });
    expect(await bench().step(parent, 2)).toEqual({ kind: 'missing' });
    expect((await admin.listAudit('parent', { limit: 9, cursor: null })).items).toMatchObject([{ verb: 'delete' }]);
  });

  test('a deleted workflow’s ID is free, and whoever takes it finds nothing of it', async () => {
    const { store, admin } = bench().bed;
    const ownership = await bench().start('w');
    await bench().step(ownership, 0);
    await store.recordEvent(ownership, { seq: 1, key: 'e', value: '1', output: 'null', elapsedMs: 0 });
    await bench().send('w', 'news', '1');
    await admin.delete(['w'], BY, { force: true, childError: '"gone"' });
    const next = await bench().start('w');
    expect(next.epoch).toBe(1);
    expect(await store.findMessages([{ workflowId: 'w', topic: 'news' }])).toEqual([false]);
    expect(await store.readEvents([{ workflowId: 'w', key: 'e' }])).toEqual([undefined]);
    await bench().giveBack(next);
    expect((await bench().claim()).workflows).toMatchObject([{ history: [] }]);
  });

  test('the children that a deleted workflow leaves are not those of whoever takes its ID', async () => {
    const { admin } = bench().bed;
    const parent = await bench().start('parent');
    const left = await startChild(parent, 0, 'left');
    await bench().end(parent);
    await admin.delete(['parent'], BY, { force: false, childError: '"gone"' });
    const next = await bench().start('parent');
    await startChild(next, 0, 'own');
    await rewind('parent', 0);
    expect(await bench().statusOf('own')).toBe('CANCELLED');
    expect(await bench().step(left, 0)).toEqual({ kind: 'written' });
    await cancel('parent');
    expect(await bench().step(left, 1)).toEqual({ kind: 'written' });
  });

  test('another priority, or another app version, is no other owner', async () => {
    const { admin } = bench().bed;
    const ownership = await bench().start('w');
    expect(await admin.prioritize('w', BY, 3)).toMatchObject({ kind: 'done' });
    expect(await admin.prioritize('w', BY, 3)).toEqual({ kind: 'unchanged', status: 'PENDING' });
    expect(await bench().bed.store.verifyOwnership(ownership)).toBe(true);
    expect(await admin.setAppVersion(['w'], BY, 'v2')).toEqual([
      { kind: 'done', statusBefore: 'PENDING', statusAfter: 'ENQUEUED' },
    ]);
    expect(await bench().step(ownership, 0), 'the version fences, since other code goes on').toEqual({ kind: 'lost' });
    expect(await bench().look('w')).toMatchObject({ attempts: 0, appVersion: 'v2' });
  });

  test('lists come in pages without a gap, newest first or oldest first, of what is asked for', async () => {
    const { admin } = bench().bed;
    const any = {
      statuses: null,
      names: null,
      idPrefix: null,
      executorId: null,
      parentId: null,
      appVersion: null,
      queue: null,
      key: null,
      attention: null,
      createdFrom: null,
      createdBefore: null,
      order: 'newest-first',
      payload: false,
      limit: 2,
      cursor: null,
    } as const;
    for (const workflowId of ['a', 'b', 'c', 'd', 'e']) await bench().enqueue(workflowId);
    const all = async (
      query: Omit<typeof any, 'order' | 'cursor'> & { readonly order: 'newest-first' | 'oldest-first' },
    ) => {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof admin.listWorkflows>> = await admin.listWorkflows({ ...query, cursor });
        found.push(...page.items.map(({ workflowId }) => workflowId));
        cursor = page.nextCursor;
      } while (cursor !== null);
      return found;
    };
    expect(await all(any)).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(await all({ ...any, order: 'oldest-first' })).toEqual(['a', 'b', 'c', 'd', 'e']);
    await bench().take({ limit: 1 });
    expect((await admin.listWorkflows({ ...any, statuses: ['PENDING'] })).items).toMatchObject([{ workflowId: 'a' }]);
    expect((await admin.listWorkflows({ ...any, idPrefix: 'b', executorId: 'one' })).items).toEqual([]);
  });
}
