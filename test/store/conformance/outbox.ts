import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ClaimedEvent } from '../../../src/store/outbox-store.js';
import { BY, type Bench } from './bench.js';

/** Events that commit with the record and are delivered by whoever claims them. */
export function describeOutbox(bench: () => Bench): void {
  const claim = (limit = 100): Promise<readonly ClaimedEvent[]> =>
    bench().bed.outbox.claim([{ topic: 'mail', limit }], 1_000);
  const add = (key: string | null, payload: string) =>
    bench().bed.outbox.add({ eventId: randomUUID(), topic: 'mail', key, payload });
  const settle = (event: ClaimedEvent | undefined, kind: 'delivered' | 'released') =>
    bench().bed.outbox.settle({ eventId: event?.eventId ?? '', token: event?.token ?? '', outcome: { kind } });

  test('events are there exactly if the result is that they came with', async () => {
    const ownership = await bench().start('w');
    const events = [
      { topic: 'mail', key: null, payload: '1' },
      { topic: 'mail', key: null, payload: '2' },
    ];
    const zombie = { ...ownership, token: randomUUID() };
    expect(await bench().step(zombie, 0, { events })).toEqual({ kind: 'lost' });
    expect(await claim()).toEqual([]);
    expect(await bench().step(ownership, 0, { events })).toEqual({ kind: 'written' });
    const claimed = await claim();
    expect(claimed.map(({ payload, attempts, workflowId }) => [payload, attempts, workflowId]).sort()).toEqual([
      ['1', 1, 'w'],
      ['2', 1, 'w'],
    ]);
    expect((await bench().step(ownership, 1, { events: [{ topic: '', key: null, payload: '3' }] })).kind).toBe(
      'refused',
    );
    expect(await bench().stepsOf('w')).toEqual(['0 step']);
  });

  test('events of one key are delivered one after the other, in their order, whatever becomes of the first', async () => {
    const { outbox, admin } = bench().bed;
    for (const payload of ['1', '2', '3']) await add('k', payload);
    const [first] = await claim();
    expect(first?.payload).toBe('1');
    expect(await claim(), 'the others wait').toEqual([]);
    await settle(first, 'delivered');
    const [second, ...none] = await claim();
    expect([second?.payload, none]).toEqual(['2', []]);
    const dead = { kind: 'dead', reason: 'REFUSED', error: null } as const;
    await outbox.settle({ eventId: second?.eventId ?? '', token: second?.token ?? '', outcome: dead });
    expect(await claim(), 'a dead one holds up what is behind it').toEqual([]);
    const attention = await admin.listAttention({ codes: null, limit: 9, cursor: null });
    expect(attention.items).toMatchObject([{ kind: 'event', code: 'UNDELIVERABLE', detail: 'REFUSED', key: 'k' }]);
    const request = { eventId: second?.eventId ?? '', nonce: randomUUID(), by: BY };
    expect([await admin.discardEvent(request), await admin.discardEvent(request)], 'one act').toEqual(['done', 'done']);
    expect(await claim()).toMatchObject([{ payload: '3' }]);
  });

  test('who lost an event’s lease settles nothing, and what is released was no attempt', async () => {
    await add(null, '1');
    const [late] = await claim();
    await bench().bed.advance(1_000);
    const [next] = await claim();
    expect(next).toMatchObject({ payload: '1', attempts: 2 });
    expect(await settle(late, 'delivered')).toEqual({ kind: 'lost' });
    expect(await settle(next, 'released')).toEqual({ kind: 'settled' });
    expect(await claim()).toMatchObject([{ attempts: 2 }]);
  });

  test('a rewind takes back what is not delivered, and the new run adds it again under the same ID', async () => {
    const { admin } = bench().bed;
    const events = [{ topic: 'mail', key: 'k', payload: '1' }];
    await bench().step(await bench().start('w'), 0, { events });
    const [before] = await claim();
    await admin.rewind('w', BY, { toStep: 0, childError: '"e"' });
    expect(await settle(before, 'delivered')).toEqual({ kind: 'lost' });
    await bench().step(await bench().take(), 0, { events });
    expect(await claim()).toMatchObject([{ eventId: before?.eventId, attempts: 1 }]);
  });

  test('a discard that is sent again after a rewind has had the event added again does not give that up', async () => {
    const { admin } = bench().bed;
    const events = [{ topic: 'mail', key: 'k', payload: '1' }];
    await bench().step(await bench().start('w'), 0, { events });
    const [{ eventId } = { eventId: '' }] = await claim();
    const request = { eventId, nonce: randomUUID(), by: BY };
    expect(await admin.discardEvent(request)).toBe('done');
    await admin.rewind('w', BY, { toStep: 0, childError: '"e"' });
    await bench().step(await bench().take(), 0, { events });
    expect(await admin.discardEvent(request)).toBe('done');
    expect(await claim()).toMatchObject([{ eventId, attempts: 1 }]);
  });
}
