import { createHmac } from 'node:crypto';
import type { DeliveryContext, OutboxEvent, OutboxHandler, WebhookOptions } from '../api/outbox.js';
import { parseDuration } from '../engine/duration.js';
import { checkKnownOptions } from '../engine/known-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { NonRetryableError, RetryableError } from '../errors/step-errors.js';
import { jsonOf } from './event-json.js';

const WEBHOOK_OPTIONS: ReadonlySet<string> = new Set<keyof WebhookOptions>(['url', 'headers', 'secret', 'timeout']);
const DEFAULT_TIMEOUT_MS = 10_000;
/** As of an attempt to deliver; a timer of Node cannot last for longer than 24 days. */
const LONGEST_TIMEOUT_MS = 3_600_000;
/** Longest wait that a receiver can ask for with Retry-After, in milliseconds. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
const LEAST_SECRET_BYTES = 16;
const BASE64_SECRET_PREFIX = 'whsec_';
/** Set by us, so that a receiver can rely on them. */
const OWN_HEADERS = [
  'content-type',
  'idempotency-key',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
] as const;
/** Say how a request travels. `fetch` sets them, and fails on others at every delivery. */
const HEADERS_OF_FETCH = [
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
] as const;
/** Statuses by which a receiver refuses this very event: it would again. All others may be another time. */
const REFUSALS: ReadonlySet<number> = new Set([400, 410, 413, 415, 422]);

/**
 * A handler that posts events as JSON: `{ id, topic, key, payload, workflowId, addedAt }`, with the event's ID as `Idempotency-Key`.
 * An answer of 2xx delivers the event. 400, 410, 413, 415 and 422 make it dead at once. Everything else is tried again: other
 * statuses, redirections (which are not followed), no answer. `Retry-After` is heeded, up to an hour.
 *
 * @throws InvalidArgumentError
 * @example
 * launch({ outbox: { handlers: { 'order.placed': webhook({ url: 'https://shop.example/hooks', secret }) } }, … })
 */
export function webhook(options: WebhookOptions): OutboxHandler {
  checkKnownOptions(options, WEBHOOK_OPTIONS, 'webhook');
  const url = checkUrl(options.url);
  const headers = checkHeaders(options.headers ?? {});
  const secret = options.secret === undefined ? undefined : checkSecret(options.secret);
  const timeoutMs = parseDuration(options.timeout ?? DEFAULT_TIMEOUT_MS, 'timeout');
  if (timeoutMs < 1 || timeoutMs > LONGEST_TIMEOUT_MS) {
    throw new InvalidArgumentError('timeout of webhook must be from 1 ms to 1 h.');
  }
  return async (event: OutboxEvent, { signal }: DeliveryContext) => {
    const body = jsonOf(event);
    const sent = new Headers(headers);
    sent.set('content-type', 'application/json');
    sent.set('idempotency-key', event.id);
    if (secret !== undefined) sign(sent, secret, event.id, body);
    await post(url, { headers: sent, body, signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
  };
}

async function post(url: string, request: Pick<RequestInit, 'headers' | 'body' | 'signal'>): Promise<void> {
  let response: Response;
  try {
    response = await fetch(url, { method: 'POST', redirect: 'manual', ...request });
  } catch (cause) {
    throw new RetryableError('The receiver did not answer.', { cause });
  }
  const { status, ok, headers } = response;
  // Whatever it says, however much: it is not read.
  await response.body?.cancel().catch(() => undefined);
  if (ok) return;
  // Neither the address nor the answer belongs into an error: both may hold secrets.
  const message = `The receiver answered with status ${String(status)}.`;
  if (REFUSALS.has(status)) throw new NonRetryableError(message);
  const afterMs = retryAfterMs(headers.get('retry-after'));
  throw new RetryableError(message, afterMs === undefined ? {} : { afterMs });
}

/** Only the form in seconds: the other one is a moment of the receiver's clock. */
function retryAfterMs(value: string | null): number | undefined {
  if (value === null || !/^\d{1,9}$/.test(value)) return undefined;
  return Math.min(Number(value) * 1_000, LONGEST_RETRY_AFTER_MS);
}

/** standardwebhooks.com */
function sign(headers: Headers, secret: Buffer, id: string, body: string): void {
  // The time is for the receiver, who may refuse what is old.
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const digest = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  headers.set('webhook-id', id);
  headers.set('webhook-timestamp', timestamp);
  headers.set('webhook-signature', `v1,${digest}`);
}

function checkUrl(given: unknown): string {
  const url = given instanceof URL || typeof given === 'string' ? parseUrl(String(given)) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new InvalidArgumentError('url must be an address that begins with http:// or https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('url must not hold a user name or password: give them in headers.');
  }
  return url.href;
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function checkHeaders(given: Readonly<Record<string, string>>): Headers {
  let headers: Headers;
  try {
    headers = new Headers(given);
  } catch {
    // Without the cause, which quotes the value.
    throw new InvalidArgumentError('headers must be an object of header names and their values.');
  }
  const own = OWN_HEADERS.find((name) => headers.has(name));
  if (own !== undefined) throw new InvalidArgumentError(`headers must not set ${own}: that is Holdfast's own.`);
  const ofFetch = HEADERS_OF_FETCH.find((name) => headers.has(name));
  if (ofFetch !== undefined) throw new InvalidArgumentError(`headers must not set ${ofFetch}: fetch does that.`);
  return headers;
}

function checkSecret(given: unknown): Buffer {
  const text = typeof given === 'string' ? given : '';
  const secret = text.startsWith(BASE64_SECRET_PREFIX)
    ? Buffer.from(text.slice(BASE64_SECRET_PREFIX.length), 'base64')
    : Buffer.from(text);
  if (secret.length < LEAST_SECRET_BYTES) {
    throw new InvalidArgumentError(`secret must be a text of at least ${String(LEAST_SECRET_BYTES)} bytes.`);
  }
  return secret;
}
