import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  defineWorkflow,
  NonRetryableError,
  outbox,
  RetryableError,
  type Holdfast,
  type HoldfastOptions,
  type LogFields,
  type OutboxEvent,
  type OutboxHandler,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
/** Adds, and delivers nothing. */
let adder: Holdfast;
beforeAll(async () => {
  bed = await createBed();
  adder = await bed.launch({ workflows: [] });
});
afterAll(() => bed.close());

const SOON = { maxAttempts: 3, initialDelay: 1, maxDelay: 1 } as const;

function relay(
  handlers: Record<string, OutboxHandler>,
  options: Partial<HoldfastOptions> = {},
  settings: Partial<HoldfastOptions['outbox']> = {},
): Promise<Holdfast> {
  return bed.launch({
    workflows: [],
    pollInterval: 20,
    ...options,
    outbox: { retries: SOON, ...settings, handlers },
  });
}

async function inOutbox(topic: string): Promise<{ id: string; state: string; attempts: number; payload: string }[]> {
  const { rows } = await bed.sql.query<{ id: string; state: string; attempts: number; payload: string }>(
    `SELECT event_id::text AS id, state, attempts, payload FROM holdfast.outbox_event WHERE topic = $1 ORDER BY position`,
    [topic],
  );
  return rows;
}

const delivered = (topic: string): Promise<void> =>
  waitUntil(async () => (await inOutbox(topic)).length === 0, `all of ${topic} is delivered`);

/** A connection of one's own, in a transaction. */
async function transaction(): Promise<pg.Client> {
  const own = new pg.Client({ connectionString: bed.database.url });
  await own.connect();
  await own.query('BEGIN');
  return own;
}

describe('attempts', () => {
  test('an error is tried again, with the same event and the number of the attempt; then the event is gone', async () => {
    const seen: [string, number][] = [];
    const here = await relay({
      again: ({ id }, { attempt }) => {
        seen.push([id, attempt]);
        if (attempt < 3) throw new Error('not yet');
      },
    });
    await adder.outbox.add('again', 1);
    await delivered('again');
    const [id] = seen[0] ?? [];
    expect(seen).toEqual([
      [id, 1],
      [id, 2],
      [id, 3],
    ]);
    expect(here.metrics().outbox).toEqual({ delivered: 1, failures: 2, dead: 0 });
    await here.close();
  });

  test('an error that fails when it is looked at is tried again like any other, and harms nothing else', async () => {
    const { proxy, revoke } = Proxy.revocable(new Error('revoked'), {});
    revoke();
    const here = await relay({
      revoked: () => {
        throw proxy;
      },
    });
    await adder.outbox.add('revoked', 1);
    await waitUntil(async () => (await inOutbox('revoked'))[0]?.state === 'dead', 'it is dead');
    expect((await inOutbox('revoked'))[0]?.attempts).toBe(SOON.maxAttempts);
    await here.close();
  });

  test('RetryableError chooses when the next attempt begins', async () => {
    const here = await relay({ later: () => Promise.reject(new RetryableError('busy', { afterMs: 3_600_000 })) });
    await adder.outbox.add('later', 1);
    await waitUntil(async () => (await inOutbox('later'))[0]?.attempts === 1, 'it was tried');
    await waitUntil(async () => {
      const { rows } = await bed.sql.query<{ ahead: boolean }>(
        `SELECT due_at > clock_timestamp() + interval '50 min' AS ahead FROM holdfast.outbox_event WHERE topic = 'later'`,
      );
      return rows[0]?.ahead === true;
    }, 'it is put off by an hour');
    await here.close();
  });

  test('a RetryableError whose afterMs is no time leaves the next attempt to the policy', async () => {
    const seen: number[] = [];
    const here = await relay({
      misread: (_, { attempt }) => {
        seen.push(attempt);
        if (attempt === 1) throw new RetryableError('busy', { afterMs: NaN });
      },
    });
    await adder.outbox.add('misread', 1);
    await delivered('misread');
    expect(seen).toEqual([1, 2]);
    await here.close();
  });

  test('after the last attempt, or at once for a NonRetryableError, the event is dead, listed, and holds back its key and no other', async () => {
    const seen: unknown[] = [];
    const here = await relay({
      deadly: ({ payload }) => {
        seen.push(payload);
        if (payload === 'refused') throw new NonRetryableError('secret-of-the-refusal');
        if (payload === 'poison') throw new Error('secret-of-the-poison');
      },
    });
    await adder.outbox.add('deadly', 'poison', { key: 'a' });
    await adder.outbox.add('deadly', 'behind the poison', { key: 'a' });
    await adder.outbox.add('deadly', 'refused', { key: 'b' });
    await adder.outbox.add('deadly', 'behind the refused', { key: 'b' });
    await adder.outbox.add('deadly', 'of another key', { key: 'c' });
    await adder.outbox.add('deadly', 'of no key');
    await waitUntil(() => here.metrics().outbox.dead === 2, 'two are dead');
    await waitUntil(async () => (await inOutbox('deadly')).length === 4, 'the others are delivered');
    expect(seen.filter((payload) => payload === 'poison')).toHaveLength(3);
    expect(seen.filter((payload) => payload === 'refused')).toHaveLength(1);
    expect(seen).not.toContain('behind the poison');

    const { items } = await adder.admin.outbox.list({ topic: 'deadly', payload: true });
    expect(items).toMatchObject([
      { key: 'a', state: 'dead', reason: 'ATTEMPTS_EXHAUSTED', attempts: 3, payload: { value: 'poison' } },
      { key: 'a', state: 'waiting', reason: null },
      {
        key: 'b',
        state: 'dead',
        reason: 'REFUSED',
        attempts: 1,
        lastError: { value: { message: 'secret-of-the-refusal' } },
      },
      { key: 'b', state: 'waiting', reason: null },
    ]);
    expect((await adder.admin.outbox.list({ topic: 'deadly', state: 'dead' })).items.map(({ key }) => key)).toEqual([
      'a',
      'b',
    ]);
    expect((await adder.admin.outbox.list({ topic: 'deadly', state: 'pending', limit: 1 })).nextCursor).not.toBeNull();
    await here.close();
  });

  test('redeliver gives a dead event fresh attempts, discard gives it up: what waits behind it goes on; both are audited', async () => {
    let isMended = false;
    const seen: unknown[] = [];
    const here = await relay({
      mended: ({ payload }) => {
        if (!isMended) throw new NonRetryableError('broken');
        seen.push(payload);
      },
    });
    for (const key of ['a', 'b']) {
      await adder.outbox.add('mended', `first of ${key}`, { key });
      await adder.outbox.add('mended', `second of ${key}`, { key });
    }
    await waitUntil(() => here.metrics().outbox.dead === 2, 'both are dead');
    const { items } = await adder.admin.outbox.list({ topic: 'mended', state: 'dead' });
    const [a, b] = items.map(({ eventId }) => eventId);
    expect(await adder.admin.overview()).toMatchObject({ outbox: { dead: expect.any(Number) as number } });
    isMended = true;
    const by = { actor: 'anna', reason: 'mended' };
    expect(await adder.admin.outbox.redeliver(a ?? '', by)).toEqual({ eventId: a, result: 'done' });
    expect(await adder.admin.outbox.discard((b ?? '').toUpperCase(), by)).toEqual({ eventId: b, result: 'done' });
    await delivered('mended');
    expect(seen.toSorted()).toEqual(['first of a', 'second of a', 'second of b']);
    expect(seen.indexOf('first of a')).toBeLessThan(seen.indexOf('second of a'));
    expect((await adder.admin.audit(a ?? '')).items).toMatchObject([
      { verb: 'outbox.redeliver', actor: 'anna', reason: 'mended' },
    ]);
    expect((await adder.admin.audit(b ?? '')).items).toMatchObject([
      { verb: 'outbox.discard', detail: { topic: 'mended', key: 'b', attempts: 1 } },
    ]);
    for (const verb of ['redeliver', 'discard'] as const) {
      await expect(adder.admin.outbox[verb](a ?? '')).rejects.toMatchObject({ code: 'OUTBOX_EVENT_NOT_FOUND' });
      await expect(adder.admin.outbox[verb]('no UUID')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(adder.admin.outbox[verb](b ?? '', { why: 'x' } as never)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    }
    await here.close();
  });

  test('what is not dead cannot be redelivered, but can be given up; a lost reply is one act', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const here = await bed.launch({ workflows: [], database: proxy.connectionString(bed.database.url) });
    await here.outbox.add('nobody', 1);
    const [event] = await inOutbox('nobody');
    expect(await here.admin.outbox.redeliver(event?.id ?? '')).toMatchObject({ result: 'unchanged' });
    const fault = proxy.arm({ do: 'drop-reply' }, /discard_event/);
    expect(await here.admin.outbox.discard(event?.id ?? '')).toMatchObject({ result: 'done' });
    expect(fault.hits).toBe(1);
    expect((await here.admin.audit(event?.id ?? '')).items).toHaveLength(1);
    await here.close();
    await proxy.close();
  });

  test('C24 an attempt whose time is up has failed: its signal fires, and its late result counts for nothing', async () => {
    const late = gate();
    const signals: boolean[] = [];
    const here = await relay(
      {
        slow: async (_, { signal, attempt }) => {
          if (attempt > 1) return;
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          signals.push(signal.aborted);
          await late.opened;
        },
      },
      {},
      { timeout: 50, concurrency: 1 },
    );
    await adder.outbox.add('slow', 1);
    await waitUntil(() => here.metrics().outbox.failures === 1, 'its time is up');
    expect(signals).toEqual([true]);
    // The only slot is not free before that handler has settled.
    expect(await inOutbox('slow')).toHaveLength(1);
    late.open();
    await delivered('slow');
    expect(here.metrics().outbox).toEqual({ delivered: 1, failures: 1, dead: 0 });
    await here.close();
  });

  test('an event that outlives every relay that takes it is dead, too', async () => {
    await adder.outbox.add('deadly to relays', 1);
    await bed.sql.query(`UPDATE holdfast.outbox_event SET attempts = 3 WHERE topic = 'deadly to relays'`);
    const here = await relay({ 'deadly to relays': () => expect.unreachable() });
    await waitUntil(() => here.metrics().outbox.dead === 1, 'it is dead');
    await here.close();
  });
});

describe('order', () => {
  test('an event is delivered after those of its key whose adding was committed before its own began, whatever commits late', async () => {
    const seen: unknown[] = [];
    const late = await transaction();
    await adder.outbox.add('ordered', 'begun first, committed last', { key: 'k', transaction: late });
    const here = await relay({ ordered: ({ payload }) => seen.push(payload) });
    await adder.outbox.add('ordered', 'second', { key: 'k' });
    await adder.outbox.add('ordered', 'third', { key: 'k' });
    await waitUntil(() => seen.length === 2, 'nobody waits for an open transaction');
    await late.query('COMMIT');
    await delivered('ordered');
    expect(seen).toEqual(['second', 'third', 'begun first, committed last']);
    await late.end();
    await here.close();
  });

  test('one that commits while a later one of its key is being delivered waits for that', async () => {
    const arrived = gate();
    const leave = gate();
    const seen: unknown[] = [];
    const late = await transaction();
    await adder.outbox.add('one at a time', 'late', { key: 'k', transaction: late });
    const here = await relay({
      'one at a time': async ({ payload }) => {
        seen.push(`${String(payload)} begins`);
        arrived.open();
        await leave.opened;
        seen.push(`${String(payload)} ends`);
      },
    });
    const other = await relay({ 'one at a time': ({ payload }) => seen.push(`${String(payload)} elsewhere`) });
    await adder.outbox.add('one at a time', 'early', { key: 'k' });
    await waitUntil(() => seen.length > 0, 'one of them has it');
    await late.query('COMMIT');
    await late.end();
    leave.open();
    await delivered('one at a time');
    const begins = seen.findIndex((entry) => String(entry).startsWith('late'));
    expect(begins).toBe(seen.length - (seen.at(-1) === 'late elsewhere' ? 1 : 2));
    await here.close();
    await other.close();
  });

  test('a retry keeps its place: what was added after it waits', async () => {
    const seen: unknown[] = [];
    const here = await relay({
      'keeps its place': ({ payload }, { attempt }) => {
        seen.push(payload);
        if (payload === 1 && attempt < 3) throw new Error('not yet');
      },
    });
    for (const payload of [1, 2, 3]) await adder.outbox.add('keeps its place', payload, { key: 'k' });
    await delivered('keeps its place');
    expect(seen).toEqual([1, 1, 1, 2, 3]);
    await here.close();
  });
});

describe('topics', () => {
  test('C17 events of a topic that nobody handles are left alone, until somebody does', async () => {
    const here = await relay({ 'known topic': () => undefined });
    await adder.outbox.add('unknown topic', 1);
    await adder.outbox.add('known topic', 1);
    await delivered('known topic');
    expect(await inOutbox('unknown topic')).toMatchObject([{ state: 'ready', attempts: 0 }]);
    expect((await adder.admin.overview()).outbox.pending).toBeGreaterThan(0);
    const there = await relay({ 'unknown topic': () => undefined });
    await delivered('unknown topic');
    await here.close();
    await there.close();
  });

  test('C31 a topic whose handlers hang does not hold up the others', async () => {
    const hang = gate();
    const here = await relay({ hangs: () => hang.opened, flows: () => undefined }, {}, { concurrency: 2 });
    for (let n = 0; n < 10; n++) await adder.outbox.add('hangs', n);
    await waitUntil(
      async () => (await inOutbox('hangs')).filter(({ attempts }) => attempts > 0).length === 2,
      'as many as may hang do',
    );
    for (let n = 0; n < 10; n++) await adder.outbox.add('flows', n);
    await delivered('flows');
    expect((await inOutbox('hangs')).filter(({ attempts }) => attempts > 0)).toHaveLength(2);
    hang.open();
    await delivered('hangs');
    await here.close();
  });
});

describe('several relays', () => {
  /** As if the relay that has it were paused for longer than its lease. */
  const expireLease = (topic: string): Promise<unknown> =>
    bed.sql.query(`UPDATE holdfast.outbox_event SET due_at = clock_timestamp() WHERE topic = $1`, [topic]);

  test('a relay that was paused for too long cannot say what became of an event: another one has it', async () => {
    const arrived = gate();
    const wake = gate();
    const zombie = await relay(
      {
        stolen: async () => {
          arrived.open();
          await wake.opened;
        },
      },
      {},
      // So that it does not take the event again itself.
      { concurrency: 1 },
    );
    await adder.outbox.add('stolen', 'first', { key: 'k' });
    await arrived.opened;
    await adder.outbox.add('stolen', 'second', { key: 'k' });
    const again = gate();
    const leave = gate();
    const seen: unknown[] = [];
    const owner = await relay({
      stolen: async ({ payload }) => {
        seen.push(payload);
        again.open();
        await leave.opened;
      },
    });
    await expireLease('stolen');
    await again.opened;
    wake.open();
    await zombie.close();
    expect(zombie.metrics().outbox).toEqual({ delivered: 0, failures: 0, dead: 0 });
    // What the zombie has to say is known to the database by now: the event is the owner's, and the next one waits for it.
    expect((await inOutbox('stolen')).map(({ attempts }) => attempts)).toEqual([2, 0]);
    expect(seen).toEqual(['first']);
    leave.open();
    await delivered('stolen');
    expect(seen).toEqual(['first', 'second']);
    expect(owner.metrics().outbox.delivered).toBe(2);
    await owner.close();
  });

  test('while a handler goes on after its time, no other relay delivers its event', async () => {
    const late = gate();
    let running = 0;
    let most = 0;
    const slow: OutboxHandler = async () => {
      most = Math.max(most, ++running);
      await late.opened;
      running -= 1;
    };
    const relays: Holdfast[] = [];
    for (const name of ['one', 'two']) {
      // Whose only slot of the topic is taken leaves the event to the other one.
      const settings = { timeout: 50, concurrency: 1 };
      relays.push(await relay({ overdue: slow, [`probe ${name}`]: () => undefined }, {}, settings));
    }
    await adder.outbox.add('overdue', 1);
    await waitUntil(() => relays.some((one) => one.metrics().outbox.failures === 1), 'its time is up');
    // A relay that has delivered what was added since has also looked for the event.
    for (let round = 0; round < 3; round++) {
      for (const name of ['one', 'two']) {
        await adder.outbox.add(`probe ${name}`, round);
        await delivered(`probe ${name}`);
      }
    }
    expect(most).toBe(1);
    late.open();
    await delivered('overdue');
    expect(most).toBe(1);
    for (const one of relays) await one.close();
  });

  test('a process that closes does not wait for a handler that goes on after its time, and leaves the event to its lease', async () => {
    const here = await relay({ stuck: () => new Promise(() => undefined) }, {}, { timeout: 50 });
    await adder.outbox.add('stuck', 1);
    await waitUntil(() => here.metrics().outbox.failures === 1, 'its time is up');
    const begun = performance.now();
    await here.close();
    // A stop that waits is given up after 2 s, and what it waits for goes on.
    expect(performance.now() - begun).toBeLessThan(1_500);
    const { rows } = await bed.sql.query<{ leased: boolean; attempts: number }>(
      `SELECT attempts, due_at > clock_timestamp() AS leased FROM holdfast.outbox_event WHERE topic = 'stuck'`,
    );
    expect(rows).toEqual([{ attempts: 1, leased: true }]);
  });

  test('C9 the reply to a claim is lost: the event is delivered when the lease is over', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    await adder.outbox.add('claim lost', 1);
    const fault = proxy.arm({ do: 'drop-reply' }, /claim_events/);
    const seen: number[] = [];
    const here = await relay(
      { 'claim lost': (_, { attempt }) => seen.push(attempt) },
      { database: proxy.connectionString(bed.database.url) },
    );
    await fault.happened;
    await waitUntil(async () => (await inOutbox('claim lost'))[0]?.attempts === 1, 'it is taken');
    await expireLease('claim lost');
    await delivered('claim lost');
    expect(seen).toEqual([2]);
    await here.close();
    await proxy.close();
  });

  test('C9 the reply to what became of an event is lost: it was delivered, and is not again', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const seen: number[] = [];
    const here = await relay(
      { 'settle lost': (_, { attempt }) => seen.push(attempt) },
      { database: proxy.connectionString(bed.database.url) },
    );
    const fault = proxy.arm({ do: 'drop-reply' }, /settle_events/);
    await adder.outbox.add('settle lost', 1);
    await delivered('settle lost');
    await fault.happened;
    const cut = proxy.arm({ do: 'cut-before' }, /settle_events/);
    await adder.outbox.add('settle lost', 2);
    await delivered('settle lost');
    expect(cut.hits).toBe(1);
    expect(seen).toEqual([1, 1]);
    await here.close();
    await proxy.close();
  });

  test('C39 a relay goes on after the outbox could not be read', async () => {
    const warned: string[] = [];
    const here = await relay(
      { 'goes on': () => undefined },
      { logger: { ...silentLogger, warn: (message) => warned.push(message) } },
    );
    await bed.sql.query('ALTER FUNCTION holdfast.claim_events RENAME TO claim_events_gone');
    await waitUntil(() => warned.length > 0, 'it has tried');
    await bed.sql.query('ALTER FUNCTION holdfast.claim_events_gone RENAME TO claim_events');
    await adder.outbox.add('goes on', 1);
    await delivered('goes on');
    await here.close();
  });
});

describe('shutdown', () => {
  test('C12 what is under way may end; what does not is given back, which is no attempt', async () => {
    const arrived = gate();
    const here = await relay({
      interrupted: (_, { signal }) => {
        arrived.open();
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(new Error('stopped'));
          });
        });
      },
    });
    await adder.outbox.add('interrupted', 1);
    await arrived.opened;
    await here.close();
    expect(await inOutbox('interrupted')).toMatchObject([{ state: 'ready', attempts: 0 }]);
    const there = await relay({ interrupted: (_, { attempt }) => expect(attempt).toBe(1) }, { shutdownTimeout: '10s' });
    await delivered('interrupted');
    await there.close();
  });

  test('a delivery that ends in time counts', async () => {
    const arrived = gate();
    const here = await relay(
      {
        finishing: async () => {
          arrived.open();
          await new Promise((resolve) => setTimeout(resolve, 100));
        },
      },
      { shutdownTimeout: '20s' },
    );
    await adder.outbox.add('finishing', 1);
    await arrived.opened;
    await here.close();
    expect(await inOutbox('finishing')).toEqual([]);
  });
});

test('C72 neither payloads nor errors of handlers are in the log', async () => {
  const lines: [string, LogFields | undefined][] = [];
  const note = (message: string, fields?: LogFields): void => {
    lines.push([message, fields]);
  };
  const here = await relay(
    { logged: ({ payload }) => Promise.reject(new NonRetryableError(`secret ${String(payload)}`)) },
    { logger: { debug: note, info: note, warn: note, error: note } },
  );
  await adder.outbox.add('logged', 'payload-secret', { key: 'key-secret' });
  await waitUntil(() => here.metrics().outbox.dead === 1, 'it is dead');
  await waitUntil(() => lines.some(([, fields]) => fields?.['reason'] === 'REFUSED'), 'it is said');
  expect(lines.at(-1)?.[1]).toMatchObject({ topic: 'logged', attempts: 1 });
  expect(JSON.stringify(lines)).not.toContain('secret');
  await here.close();
});

test('a handler runs outside of any workflow', async () => {
  const code = gate<unknown>();
  const adds = defineWorkflow('adds', () => outbox.add('where', 1));
  const here = await relay(
    {
      where: async () => {
        await outbox.add('elsewhere', 1).catch((error: unknown) => {
          code.open((error as { code: string }).code);
        });
      },
    },
    { workflows: [adds] },
  );
  await (await here.start(adds, {})).result();
  expect(await code.opened).toBe('OUTSIDE_WORKFLOW');
  await here.close();
});

test('C33 three executors, 2,000 events: each key in order, no event twice at the same time, and all are delivered', async () => {
  const KEYS = 40;
  const EACH = 50;
  const underWay = new Set<string>();
  const seen = new Map<string | null, unknown[]>();
  let doubled = 0;
  const handler = async ({ key, payload }: OutboxEvent): Promise<void> => {
    if (underWay.has(key ?? '')) doubled += 1;
    underWay.add(key ?? '');
    seen.set(key, [...(seen.get(key) ?? []), payload]);
    await new Promise((resolve) => setImmediate(resolve));
    underWay.delete(key ?? '');
  };
  const relays = await Promise.all([1, 2, 3].map(() => relay({ many: handler }, {}, { concurrency: 16 })));
  const adds = defineWorkflow('addsSome', async (key: string) => {
    for (let n = 0; n < EACH; n++) await outbox.add('many', n, { key });
  });
  const source = await bed.launch({ workflows: [adds] });
  await Promise.all(
    Array.from({ length: KEYS }, async (_, n) => (await source.start(adds, {}, `key ${String(n)}`)).result()),
  );
  await delivered('many');
  expect(seen.size).toBe(KEYS);
  for (const payloads of seen.values()) expect(payloads).toEqual(Array.from({ length: EACH }, (_, n) => n));
  expect(doubled).toBe(0);
  expect(relays.reduce((sum, each) => sum + each.metrics().outbox.delivered, 0)).toBe(KEYS * EACH);
  await Promise.all([...relays, source].map((each) => each.close()));
});
