import { createHmac } from 'node:crypto';
import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { webhook, type Holdfast, type WebhookOptions } from '../../src/index.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startReceiver, type Answer, type Receiver } from './support/receiver.js';

const SECRET = 'whsec_' + Buffer.from('0123456789abcdef').toString('base64');

let bed: Bed;
let receiver: Receiver;
let holdfast: Holdfast;
beforeAll(async () => {
  bed = await createBed();
  receiver = await startReceiver();
  holdfast = await bed.launch({
    workflows: [],
    outbox: {
      retries: { maxAttempts: 3, initialDelay: 1, maxDelay: 1 },
      handlers: {
        hook: webhook({
          url: receiver.url,
          headers: { authorization: 'Bearer header-secret' },
          secret: SECRET,
          timeout: '20s',
        }),
        plain: webhook({ url: new URL(receiver.url) }),
        impatient: webhook({ url: receiver.url, timeout: 300 }),
      },
    },
  });
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer = () => ({ status: 204 });
});
afterAll(async () => {
  await bed.close();
  await receiver.close();
});

const sent = async (): Promise<
  { state: string; attempts: number; error: string | null; ahead: boolean } | undefined
> => {
  const { rows } = await bed.sql.query<{ state: string; attempts: number; error: string | null; ahead: boolean }>(
    `SELECT state, attempts, error, due_at > clock_timestamp() + interval '30 min' AS ahead FROM holdfast.outbox_event`,
  );
  return rows[0];
};
const isGone = (): Promise<void> => waitUntil(async () => (await sent()) === undefined, 'it is delivered');
const isDead = (): Promise<void> => waitUntil(async () => (await sent())?.state === 'dead', 'it is dead');
const discard = async (): Promise<void> => {
  for (const { eventId } of (await holdfast.admin.outbox.list()).items) await holdfast.admin.outbox.discard(eventId);
};

test('posts JSON with the ID of the event as idempotency key, the given headers, and a signature of Standard Webhooks', async () => {
  await holdfast.outbox.add('hook', { at: new Date(0), text: 'käse 🧀' }, { key: 'ö' });
  await isGone();
  const [request] = receiver.received;
  if (request === undefined) throw new Error('Nothing was received.');
  const { headers, body, event } = request;
  expect(JSON.parse(body)).toEqual({
    id: event.id,
    topic: 'hook',
    key: 'ö',
    payload: { at: '1970-01-01T00:00:00.000Z', text: 'käse 🧀' },
    workflowId: null,
    addedAt: expect.stringMatching(/^\d{4}-/) as string,
  });
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'idempotency-key': event.id,
    'webhook-id': event.id,
    authorization: 'Bearer header-secret',
  });
  const digest = createHmac('sha256', '0123456789abcdef')
    .update(`${event.id}.${String(headers['webhook-timestamp'])}.${body}`)
    .digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${digest}`);
});

test('without a secret there is no signature', async () => {
  await holdfast.outbox.add('plain', null);
  await isGone();
  expect(receiver.received[0]?.headers).not.toHaveProperty('webhook-signature');
  expect(receiver.received[0]?.event.payload).toBeNull();
});

describe('what an answer means', () => {
  test.each([200, 201, 202, 204, 299])('%i delivers, whatever the body and its size', async (status) => {
    receiver.answer = () => ({ status, ...(status === 204 ? {} : { body: 'x'.repeat(8 * 2 ** 20) }) });
    await holdfast.outbox.add('hook', 1);
    await isGone();
    expect(receiver.received).toHaveLength(1);
  });

  test.each([400, 410, 413, 415, 422])('%i refuses the event for good', async (status) => {
    receiver.answer = () => ({ status, body: 'answer-secret' });
    await holdfast.outbox.add('hook', 'payload-secret');
    await isDead();
    expect(receiver.received).toHaveLength(1);
    const [entry] = (await holdfast.admin.outbox.list({ payload: true })).items;
    expect(entry).toMatchObject({
      reason: 'REFUSED',
      lastError: { value: { code: 'NON_RETRYABLE', message: `The receiver answered with status ${String(status)}.` } },
    });
    expect((await sent())?.error).not.toContain('secret');
    await discard();
  });

  test.each<Answer>([
    { status: 500 },
    { status: 503, body: 'x'.repeat(2 ** 20) },
    { status: 401 },
    { status: 404 },
    { status: 409 },
    { status: 429 },
  ])('$status is tried again', async (answer) => {
    receiver.answer = (_, nth) => (nth < 3 ? answer : { status: 204 });
    await holdfast.outbox.add('hook', 1);
    await isGone();
    expect(new Set(receiver.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(receiver.received).toHaveLength(3);
  });

  test('redirections are not followed', async () => {
    const elsewhere = await startReceiver();
    receiver.answer = () => ({ status: 307, headers: { location: elsewhere.url } });
    await holdfast.outbox.add('hook', 1);
    await isDead();
    expect(receiver.received).toHaveLength(3);
    expect(elsewhere.received).toEqual([]);
    await elsewhere.close();
    await discard();
  });

  test('Retry-After is heeded, up to an hour', async () => {
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '999999' } });
    await holdfast.outbox.add('hook', 1);
    await waitUntil(async () => (await sent())?.ahead === true, 'it is put off');
    await discard();
  });

  test('C18 a receiver that does not answer in time has not got it', async () => {
    receiver.answer = (_, nth) => (nth < 2 ? undefined : { status: 204 });
    await holdfast.outbox.add('impatient', 1);
    await isGone();
    expect(receiver.received).toHaveLength(2);
  });

  test('a connection that is refused, or cut in the middle, is tried again; the error says neither address nor secret', async () => {
    const cutting = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.destroy());
    });
    await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve));
    const { port } = cutting.address() as { port: number };
    const here = await bed.launch({
      workflows: [],
      outbox: {
        retries: { maxAttempts: 2, initialDelay: 1, maxDelay: 1 },
        handlers: {
          cut: webhook({ url: `http://127.0.0.1:${String(port)}/path-secret?query-secret`, secret: SECRET }),
        },
      },
    });
    await holdfast.outbox.add('cut', 1);
    await isDead();
    await new Promise((resolve) => cutting.close(resolve));
    const [entry] = (await holdfast.admin.outbox.list()).items;
    await holdfast.admin.outbox.redeliver(entry?.eventId ?? '');
    await isDead();
    const { error } = (await sent()) ?? {};
    expect(error).toContain('The receiver did not answer.');
    expect(error).not.toContain('secret');
    expect(error).not.toContain('MDEyMzQ1');
    await discard();
    await here.close();
  });

  test.each([[new Map([[1, 2]])], [{ n: 12n }], [[NaN]], [new Error('x')], [Buffer.from('x')]])(
    'a payload that JSON would lose without a word (%o) is dead, and nothing is sent',
    async (payload) => {
      await holdfast.outbox.add('hook', payload);
      await isDead();
      expect(receiver.received).toEqual([]);
      await discard();
    },
  );
});

test.each<[string, unknown]>([
  ['no address', { url: 'nowhere' }],
  ['another protocol', { url: 'file:///etc/passwd' }],
  ['a password in the address', { url: 'https://user:secret@host/' }],
  ['no options', undefined],
  ['an unknown option', { url: 'https://host/', method: 'PUT' }],
  ['headers of ours', { url: 'https://host/', headers: { 'Idempotency-Key': '1' } }],
  ['a header that is none', { url: 'https://host/', headers: { a: 'secret\n' + 'b' } }],
  ['a short secret', { url: 'https://host/', secret: 'secret' }],
  ['a secret that is no text', { url: 'https://host/', secret: 7 }],
  ['a wrong timeout', { url: 'https://host/', timeout: 'soon' }],
  ['no time at all', { url: 'https://host/', timeout: 0 }],
  ['a timeout that no timer lasts for', { url: 'https://host/', timeout: '30d' }],
  ['a length that fetch knows better', { url: 'https://host/', headers: { 'Content-Length': '3' } }],
  ['headers of the connection', { url: 'https://host/', headers: { 'transfer-encoding': 'chunked' } }],
])('C72 webhook refuses %s at once, and does not repeat it', (_, options) => {
  try {
    webhook(options as WebhookOptions);
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(`${(error as Error).message} ${String((error as Error).cause)}`).not.toMatch(/secret\n|:secret/);
  }
});
