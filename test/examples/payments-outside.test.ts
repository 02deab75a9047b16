import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Ledger, type LedgerEntry, readLedger } from '../../examples/payments/outside/ledger.js';
import { OutsideWorld } from '../../examples/payments/outside/server.js';
import { type Script, scriptedTroubles, seededTroubles } from '../../examples/payments/outside/trouble.js';
import { waitUntil } from '../support/launch.js';

// The judge of the example has to be right about what it writes down, or nothing is.

let folder: string;
let path: string;
let ledger: Ledger;
let world: OutsideWorld;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-outside-'));
  path = join(folder, 'ledger.jsonl');
  ledger = new Ledger(path);
});
afterEach(async () => {
  world.close();
  ledger.close();
  await rm(folder, { recursive: true, force: true });
});

async function open(
  script: Script = {},
  options: Partial<ConstructorParameters<typeof OutsideWorld>[0]> = {},
): Promise<void> {
  world = new OutsideWorld({ ledger, troubles: scriptedTroubles(script), ...options });
  await world.open();
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function ask(
  method: string,
  resource: string,
  key: string,
  body?: object,
  signal: AbortSignal | null = null,
): Promise<Answer> {
  const response = await fetch(`${world.url}${resource}`, {
    method,
    headers: { 'idempotency-key': key },
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

function charge(key: string, orderId = 'one', card = 'card-1', signal?: AbortSignal): Promise<Answer> {
  return ask('POST', '/charges', key, { orderId, cents: 500, card }, signal);
}

function written(what: LedgerEntry['what']): readonly LedgerEntry[] {
  return readLedger(path).filter((entry) => entry.what === what);
}

test('the same key is the same charge, another key is another charge', async () => {
  await open();
  const first = await charge('a');
  expect(first.status).toBe(201);
  expect(await charge('a')).toEqual(first);
  expect(written('charged')).toHaveLength(1);
  await charge('b');
  expect(written('charged')).toHaveLength(2);
});

test('a decline is an answer, and stays the answer to its key', async () => {
  await open();
  expect((await charge('a', 'one', 'card-declined')).status).toBe(402);
  expect((await charge('a', 'one', 'card-1')).status).toBe(402);
  expect(written('charged')).toEqual([]);
});

test('a lookup tells what became of a key', async () => {
  await open({ one: { charge: ['slow'] } });
  expect((await ask('GET', '/charges?order=one', 'a')).body).toEqual({ kind: 'none' });
  const charging = charge('a');
  await waitUntil(
    async () => (await ask('GET', '/charges?order=one', 'a')).body['kind'] === 'pending',
    'it is pending',
  );
  expect((await charging).status).toBe(201);
  expect((await ask('GET', '/charges?order=one', 'a')).body).toMatchObject({ kind: 'charged', charge: { cents: 500 } });
});

test('of a charge that is late a lookup knows nothing, and it finds the door shut if its order was closed meanwhile', async () => {
  await open({ one: { charge: ['late'] } });
  const charging = charge('a');
  await waitUntil(() => written('trouble').length === 1, 'it is on its way');
  expect((await ask('GET', '/charges?order=one', 'a')).body).toEqual({ kind: 'none' });
  await ask('POST', '/closed-orders', 'c', { orderId: 'one' });
  expect((await charging).status).toBe(409);
  expect(written('turned-away')).toHaveLength(1);
});

test('a charge is given back once for each key of a refund', async () => {
  await open();
  const { chargeId } = (await charge('a')).body['charge'] as { chargeId: string };
  const refund = { orderId: 'one', chargeId };
  expect((await ask('POST', '/refunds', 'r', refund)).status).toBe(201);
  expect((await ask('POST', '/refunds', 'r', refund)).status).toBe(201);
  expect(written('refunded')).toHaveLength(1);
  expect((await ask('POST', '/refunds', 's', { orderId: 'one', chargeId: 'none' })).status).toBe(404);
});

test('a closed order is given back what was charged, and takes no charge that comes later', async () => {
  await open();
  await charge('a');
  await ask('POST', '/closed-orders', 'c', { orderId: 'one' });
  await ask('POST', '/closed-orders', 'c', { orderId: 'one' });
  expect(written('refunded')).toHaveLength(1);
  expect((await charge('b')).status).toBe(409);
  expect(written('charged')).toHaveLength(1);
  expect(written('turned-away')).toHaveLength(1);
});

test('an order that was closed while its charge was being carried out is not charged', async () => {
  await open({ one: { charge: ['slow'] } });
  const charging = charge('a');
  await waitUntil(
    async () => (await ask('GET', '/charges?order=one', 'a')).body['kind'] === 'pending',
    'it is pending',
  );
  await ask('POST', '/closed-orders', 'c', { orderId: 'one' });
  expect((await charging).status).toBe(409);
  expect(written('charged')).toEqual([]);
});

test.each([
  ['reply-lost', 1, 'no answer'],
  ['no-reply', 1, 'no answer'],
  ['lost', 0, 'no answer'],
  ['error', 0, 500],
  ['error-after', 1, 500],
] as const)('trouble "%s": charged %i times, and the caller is told: %s', async (trouble, charges, told) => {
  await open({ one: { charge: [trouble] } });
  const gaveUp = new AbortController();
  const answer = charge('a', 'one', 'card-1', gaveUp.signal).then(
    ({ status }) => status,
    () => 'no answer',
  );
  await waitUntil(() => written('trouble').length === 1 && written('charged').length === charges, 'it has happened');
  if (trouble === 'lost' || trouble === 'no-reply') gaveUp.abort();
  expect(await answer).toBe(told);
  expect(written('charged')).toHaveLength(charges);
  // The second request of that kind goes well, and under the same key nothing is charged again.
  expect((await charge('a')).status).toBe(201);
  expect(written('charged')).toHaveLength(1);
});

test('while it is shut it refuses connections, and what it knows is still there afterwards', async () => {
  await open();
  await charge('a');
  world.shut();
  await expect(charge('a')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await world.open();
  expect((await charge('a')).status).toBe(201);
  expect(written('charged')).toHaveLength(1);
});

test('a request can be held at both of its moments, and the ledger is written before the second', async () => {
  const seen: [moment: string, charges: number][] = [];
  await open(
    {},
    {
      onPassing: async ({ request, moment, orderId }) => {
        seen.push([`${request} ${moment} ${orderId}`, written('charged').length]);
      },
    },
  );
  await charge('a');
  expect(seen).toEqual([
    ['charge arrived one', 0],
    ['charge done one', 1],
  ]);
});

test('an event is written down with its ID and its order, whatever else comes to that page', async () => {
  await open();
  await ask('POST', '/mail/order-confirmed', 'event-1', { id: 'event-1', payload: { orderId: 'one' } });
  expect(written('notified')).toEqual([{ what: 'notified', orderId: 'one', eventId: 'event-1' }]);
  expect((await ask('GET', '/nothing', 'x')).status).toBe(404);
});

test('troubles drawn by a seed are the same in any order, and as many as were asked for', () => {
  const orders = Array.from({ length: 1_000 }, () => randomUUID());
  const troubles = seededTroubles(7, 0.2);
  const drawn = orders.map((orderId) => troubles('charge', orderId, 1));
  const again = [...orders].reverse().map((orderId) => seededTroubles(7, 0.2)('charge', orderId, 1));
  expect(again.reverse()).toEqual(drawn);
  expect(drawn.filter((trouble) => trouble !== undefined).length).toBeGreaterThan(100);
  expect(new Set(drawn).size).toBe(8);
  expect(drawn).not.toEqual(orders.map((orderId) => seededTroubles(8, 0.2)('charge', orderId, 1)));
});
