import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { BY, LEASE_MS, type Bench } from './bench.js';

/** Leases, claims, and the limits of queues. */
export function describeClaims(bench: () => Bench): void {
  test('who registers an executor’s ID again supersedes whoever had it, at once', async () => {
    const { store } = bench().bed;
    const ownership = await bench().start('w');
    const next = await bench().register('one');
    expect(next.incarnation).toBe(bench().one.incarnation + 1);
    expect(await store.heartbeat(bench().one, LEASE_MS)).toMatchObject({ state: 'superseded' });
    expect(await store.heartbeat({ executorId: 'none', incarnation: 1 }, LEASE_MS)).toMatchObject({
      state: 'unregistered',
    });
    expect(await store.ownedWorkflows(bench().one)).toMatchObject([{ workflowId: 'w', token: ownership.token }]);
    expect((await bench().claim({ executor: next })).workflows).toMatchObject([{ reason: 'recovered', attempts: 2 }]);
    expect(await bench().endsOf('w')).toEqual(['taken over', null]);
  });

  test('what a live executor owns is nobody else’s; what a dead one owned is the next one’s', async () => {
    await bench().start('w');
    await bench().bed.advance(LEASE_MS - 1);
    await bench().bed.store.heartbeat(bench().two, LEASE_MS);
    expect(await bench().claimed({ executor: bench().two })).toEqual([]);
    await bench().bed.advance(1);
    expect(await bench().claim({ executor: bench().one }), 'its own lease has expired').toMatchObject({
      workflows: [],
    });
    expect((await bench().claim({ executor: bench().two })).workflows).toMatchObject([
      { ownership: { epoch: 2 }, reason: 'recovered' },
    ]);
  });

  test('a lease that has expired and was not taken over is renewed, and what it covers stays owned', async () => {
    const ownership = await bench().start('w');
    await bench().bed.advance(10 * LEASE_MS);
    expect(await bench().bed.store.heartbeat(bench().one, LEASE_MS)).toMatchObject({ state: 'renewed' });
    await bench().bed.store.heartbeat(bench().two, LEASE_MS);
    expect(await bench().claimed({ executor: bench().two })).toEqual([]);
    expect(await bench().step(ownership, 0)).toEqual({ kind: 'written' });
  });

  test('an executor that leaves gives what it owns to the others at once', async () => {
    await bench().start('w');
    await bench().bed.store.deregisterExecutor(bench().one);
    expect(await bench().claimed({ executor: bench().two })).toEqual(['w']);
  });

  test('a claim is bounded, by number, by names, and by the IDs asked for; the oldest go first', async () => {
    for (const workflowId of ['a', 'b', 'c', 'd']) await bench().enqueue(workflowId);
    await bench().enqueue('other', { name: 'another' });
    expect(await bench().claimed({ only: ['d', 'other', 'none'] })).toEqual(['d']);
    expect(await bench().claimed({ limit: 2 })).toEqual(['a', 'b']);
    expect(await bench().claimed({ limit: 2 })).toEqual(['c']);
    expect(await bench().claimed({ names: ['another'] })).toEqual(['other']);
  });

  test('what has a record is claimed by its app version only, what has none by any', async () => {
    const ownership = await bench().start('recorded');
    await bench().giveBack(ownership);
    await bench().enqueue('fresh');
    const next = await bench().register('three', 'v2');
    expect(await bench().claimed({ executor: next, appVersion: 'v2' })).toEqual(['fresh']);
    expect(await bench().bed.admin.unservedVersions(10)).toEqual([]);
    await bench().bed.admin.setAppVersion(['recorded'], BY, 'v3');
    expect(await bench().claimed()).toEqual([]);
    expect(await bench().bed.admin.unservedVersions(10)).toMatchObject([{ appVersion: 'v3', workflows: 1 }]);
    expect(await bench().claimed({ appVersion: 'v3' })).toEqual(['recorded']);
  });

  test('two claims of one workflow are one', async () => {
    await bench().enqueue('w');
    const claims = await Promise.all([bench().claimed(), bench().claimed({ executor: bench().two })]);
    expect(claims.flat()).toEqual(['w']);
    expect(await bench().look('w')).toMatchObject({ epoch: 1, attempts: 1 });
  });

  test('over its attempt limit a workflow becomes a dead letter; resumed, it has a fresh budget', async () => {
    const { store, admin } = bench().bed;
    await bench().start('w', { maxAttempts: 1 });
    await bench().outlive(bench().two);
    expect(await bench().claimed({ executor: bench().two })).toEqual([]);
    expect(await bench().look('w')).toMatchObject({
      status: 'DEAD_LETTER',
      epoch: 1,
      attention: { code: 'DEAD_LETTER' },
    });
    expect(await store.readOutcomes(['w'])).toMatchObject([{ status: 'DEAD_LETTER', error: '"too many"' }]);
    await admin.resume(['w'], BY);
    expect(await store.readOutcomes(['w'])).toEqual([]);
    expect((await bench().claim({ executor: bench().two })).workflows).toMatchObject([
      { attempts: 1, reason: 'resumed' },
    ]);
  });

  test('a delayed workflow is claimed when it is due, and a claim says when that is', async () => {
    await bench().enqueue('w', { delayMs: 500 });
    expect(await bench().statusOf('w')).toBe('DELAYED');
    const { againInMs } = await bench().claim();
    expect(Math.round(againInMs ?? 0)).toBe(500);
    await bench().bed.advance(501);
    expect(await bench().claimed()).toEqual(['w']);
  });

  test('the deadline of what was enqueued begins with its first claim', async () => {
    await bench().enqueue('w', { timeoutMs: 5_000 });
    await bench().bed.advance(60_000);
    await bench().bed.store.heartbeat(bench().one, LEASE_MS);
    expect((await bench().claim()).workflows).toMatchObject([{ deadlineInMs: 5_000 }]);
  });

  test('enqueued twice under one ID, a workflow is there once', async () => {
    expect(await bench().enqueue('w')).toEqual({ kind: 'enqueued' });
    expect(await bench().enqueue('w')).toEqual({ kind: 'exists', name: 'flow' });
    expect(await bench().enqueue('v', { queue: 'none' })).toEqual({ kind: 'no-queue', queue: 'none' });
  });

  test('a deduplication ID is its holder’s until that has ended, or its time has passed', async () => {
    await bench().define('q');
    const held = {
      queue: 'q',
      deduplication: { id: 'd', windowMs: null, onConflict: 'reject', cancelledError: null },
    } as const;
    const timed = { ...held, deduplication: { ...held.deduplication, id: 't', windowMs: 1_000 } };
    expect(await bench().enqueue('a', held)).toEqual({ kind: 'enqueued' });
    expect(await bench().enqueue('b', held)).toEqual({ kind: 'deduplicated', holder: 'a' });
    expect(await bench().enqueue('c', { ...held, queue: null }), 'of another queue').toEqual({ kind: 'enqueued' });
    await bench().enqueue('x', timed);
    await bench().end(await bench().take({ only: ['x'] }));
    expect(await bench().enqueue('y', timed)).toEqual({ kind: 'deduplicated', holder: 'x' });
    await bench().bed.advance(1_001);
    expect(await bench().enqueue('y', timed)).toEqual({ kind: 'enqueued' });
    await bench().end(await bench().take({ only: ['a'] }));
    expect(await bench().enqueue('b', held)).toEqual({ kind: 'enqueued' });
    const cancelling = { ...held, deduplication: { ...held.deduplication, cancelledError: '"older"' } };
    expect(await bench().enqueue('newest', cancelling)).toEqual({ kind: 'enqueued' });
    expect(await bench().look('b')).toMatchObject({ status: 'CANCELLED', payload: { error: '"older"' } });
  });

  test('debounced calls go to one workflow until it has started, and the last one counts', async () => {
    const debounced = { delayMs: 100, debounce: { key: 'k', maxWaitMs: 250 } };
    expect(await bench().enqueue('a', { ...debounced, input: '[1]' })).toEqual({ kind: 'enqueued' });
    await bench().bed.advance(90);
    expect(await bench().enqueue('b', { ...debounced, input: '[2]' })).toEqual({ kind: 'debounced', workflowId: 'a' });
    await bench().bed.advance(90);
    expect(await bench().claimed()).toEqual([]);
    expect(await bench().enqueue('c', { ...debounced, input: '[3]' })).toEqual({ kind: 'debounced', workflowId: 'a' });
    await bench().bed.advance(70);
    expect((await bench().claim()).workflows, 'the longest wait is over').toMatchObject([{ input: '[3]' }]);
    expect(await bench().enqueue('d', debounced)).toEqual({ kind: 'enqueued' });
  });

  test('a queue’s workflows hold slots while they run or are suspended, and no more than its limits allow', async () => {
    await bench().define('q', { concurrency: 2 });
    for (const workflowId of ['a', 'b', 'c']) await bench().enqueue(workflowId, { queue: 'q' });
    const { workflows, isLimited } = await bench().claim();
    expect([workflows.length, isLimited]).toEqual([2, true]);
    const [first, second] = workflows.map(({ ownership }) => ownership);
    if (first === undefined || second === undefined) throw new Error('Two are claimed.');
    expect(await bench().bed.store.suspend(first, [{ kind: 'message', topic: 'news' }])).toEqual({ kind: 'suspended' });
    expect(await bench().claimed()).toEqual([]);
    await bench().end(second);
    expect(await bench().claimed()).toEqual(['c']);
    expect(await bench().bed.queues.get('q')).toMatchObject({ waiting: 0, running: 2 });
  });

  test('an executor and a key have limits of their own', async () => {
    await bench().define('own', { executorConcurrency: 1 });
    await bench().define('keyed', { keyConcurrency: 1 });
    for (const n of ['1', '2', '3']) await bench().enqueue(`own-${n}`, { queue: 'own' });
    for (const n of ['1', '2'])
      for (const key of ['k', 'l']) await bench().enqueue(`${key}-${n}`, { queue: 'keyed', key });
    await bench().enqueue('free', { queue: 'keyed' });
    expect(await bench().claimed()).toEqual(['free', 'k-1', 'l-1', 'own-1']);
    expect(await bench().claimed({ executor: bench().two })).toEqual(['own-2']);
  });

  test('a rate limit counts claims in its window, and a claim says when it lets something through again', async () => {
    await bench().define('q', { rateLimit: { limit: 2, periodMs: 1_000 } });
    for (const workflowId of ['a', 'b', 'c']) await bench().enqueue(workflowId, { queue: 'q' });
    expect(await bench().claimed()).toEqual(['a', 'b']);
    await bench().bed.advance(400);
    expect(await bench().claim()).toMatchObject({ workflows: [], isLimited: true, againInMs: 601 });
    await bench().bed.advance(600);
    expect(await bench().claimed()).toEqual(['c']);
  });

  test('the lowest priority number goes first, within it keys take turns, and within a key the longest waiting goes first', async () => {
    await bench().define('q');
    for (const n of ['1', '2', '3']) await bench().enqueue(`a-${n}`, { queue: 'q', key: 'a' });
    await bench().enqueue('b-1', { queue: 'q', key: 'b' });
    await bench().enqueue('late', { queue: 'q', priority: 1 });
    await bench().enqueue('urgent', { queue: 'q', priority: -1 });
    const order: string[] = [];
    let turns: string | null = null;
    for (let count = 0; count < 6; count++) {
      const answer = await bench().claim({ limit: 1, turns });
      ({ turns } = answer);
      order.push(...answer.workflows.map(({ ownership }) => ownership.workflowId));
    }
    expect(order).toEqual(['urgent', 'a-1', 'b-1', 'a-2', 'a-3', 'late']);
  });

  test('one queue’s backlog does not keep another one’s from its turn', async () => {
    await bench().define('long');
    await bench().define('short');
    for (let n = 0; n < 6; n++) await bench().enqueue(`long-${String(n)}`, { queue: 'long' });
    await bench().enqueue('short-0', { queue: 'short' });
    expect(await bench().claimed({ limit: 2 })).toEqual(['long-0', 'short-0']);
  });

  test('a paused queue gives nothing out; deleted with what is in it, it limits nothing', async () => {
    const { queues } = bench().bed;
    await bench().define('q', { concurrency: 1 });
    await queues.update('q', { paused: true });
    for (const workflowId of ['a', 'b']) await bench().enqueue(workflowId, { queue: 'q' });
    expect(await bench().claimed()).toEqual([]);
    expect(await queues.delete('q', { release: false })).toEqual({ kind: 'not-empty', workflows: 2 });
    expect(await queues.delete('q', { release: true })).toEqual({ kind: 'done' });
    expect(await queues.delete('q', { release: true })).toEqual({ kind: 'missing' });
    expect(await queues.update('q', { paused: false })).toBe(false);
    expect(await bench().claimed()).toEqual(['a', 'b']);
  });

  test('a declaration is applied again only when it changes, so that edits outlive launches', async () => {
    const { queues } = bench().bed;
    const declare = (concurrency: number) =>
      queues.define(
        [
          {
            name: 'q',
            concurrency,
            executorConcurrency: null,
            keyConcurrency: null,
            rateLimit: null,
            keyRateLimit: null,
          },
        ],
        {
          isDeclaration: true,
        },
      );
    await declare(1);
    await queues.update('q', { concurrency: 5 });
    await declare(1);
    expect(await queues.get('q')).toMatchObject({ concurrency: 5 });
    await declare(2);
    expect(await queues.list()).toMatchObject([{ name: 'q', concurrency: 2 }]);
  });

  test('an enqueued child is recorded, and another one in its place when that is attached to', async () => {
    const { store } = bench().bed;
    await bench().define('q');
    const parent = await bench().start('parent');
    const deduplication = { id: 'd', windowMs: null, onConflict: 'attach', cancelledError: null } as const;
    await bench().enqueue('holder', { queue: 'q', deduplication });
    const request = { workflowId: `c-${randomUUID()}`, queue: 'q', deduplication, onParentCancel: 'cancel' } as const;
    const rest = { name: 'flow', instance: null, input: '[]', maxAttempts: 1, timeoutMs: null, attributes: null };
    const record = { ...rest, priority: 0, key: null, delayMs: 0, debounce: null, ...request };
    expect(await store.recordEnqueue(parent, { seq: 0, name: 'flow', child: record })).toEqual({
      kind: 'written',
      childId: 'holder',
    });
    const rejected = { ...record, deduplication: { ...deduplication, onConflict: 'reject' as const } };
    expect(await store.recordEnqueue(parent, { seq: 1, name: 'flow', child: rejected })).toEqual({
      kind: 'deduplicated',
      holder: 'holder',
    });
    const lost = { ...record, deduplication: null, queue: 'none' };
    expect(await store.recordEnqueue(parent, { seq: 1, name: 'flow', child: lost })).toEqual({
      kind: 'no-queue',
      queue: 'none',
    });
    const fresh = { ...record, deduplication: null };
    expect(await store.recordEnqueue(parent, { seq: 1, name: 'flow', child: fresh })).toEqual({
      kind: 'written',
      childId: fresh.workflowId,
    });
    expect(await bench().look(fresh.workflowId)).toMatchObject({
      status: 'ENQUEUED',
      parent: { workflowId: 'parent', seq: 1 },
    });
    expect(await bench().stepsOf('parent')).toEqual(['!0 flow', '!1 flow']);
  });
}
