import type { OutboxHandler, OutboxSettings } from '../api/outbox.js';
import { retryPolicy, type RetryPolicy } from '../engine/retry-policy.js';
import { wholeNumber } from '../engine/whole-number.js';
import { parseDuration } from '../engine/duration.js';
import { checkKnownOptions } from '../engine/known-options.js';
import { checkEventTopic } from '../engine/outbox-arguments.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';

const SETTINGS: ReadonlySet<string> = new Set<keyof OutboxSettings>(['handlers', 'retries', 'timeout', 'concurrency']);
const DEFAULT_TIMEOUT_MS = 30_000;
const LONGEST_TIMEOUT_MS = 3_600_000;
const DEFAULT_CONCURRENCY = 8;
const MOST_CONCURRENCY = 1_000;
/** Topics that one executor has handlers for: each is looked at by every look for events. */
const MOST_TOPICS = 1_000;
const DEFAULT_RETRIES = { maxAttempts: 15, initialDelay: '1s', maxDelay: '5m' } as const;

/** What a relay works by. */
export interface RelaySettings {
  readonly handlers: ReadonlyMap<string, OutboxHandler>;
  readonly retries: RetryPolicy;
  readonly timeoutMs: number;
  readonly concurrency: number;
}

/** @throws InvalidArgumentError */
export function checkOutboxSettings(settings: OutboxSettings): RelaySettings {
  checkKnownOptions(settings, SETTINGS, 'outbox');
  const timeoutMs = parseDuration(settings.timeout ?? DEFAULT_TIMEOUT_MS, 'outbox.timeout');
  if (timeoutMs < 1 || timeoutMs > LONGEST_TIMEOUT_MS) {
    throw new InvalidArgumentError('outbox.timeout must be from 1 ms to 1 h.');
  }
  return {
    handlers: checkHandlers(settings.handlers),
    retries: retryPolicy(settings.retries ?? DEFAULT_RETRIES),
    timeoutMs,
    concurrency: wholeNumber(settings.concurrency ?? DEFAULT_CONCURRENCY, 1, MOST_CONCURRENCY, 'outbox.concurrency'),
  };
}

function checkHandlers(handlers: unknown): ReadonlyMap<string, OutboxHandler> {
  if (typeof handlers !== 'object' || handlers === null || Array.isArray(handlers)) {
    throw new InvalidArgumentError('outbox.handlers must be an object: { [topic]: handler }.');
  }
  const entries: readonly [string, unknown][] = Object.entries(handlers);
  if (entries.length > MOST_TOPICS) {
    throw new InvalidArgumentError(`outbox.handlers has more than ${String(MOST_TOPICS)} topics.`);
  }
  return new Map(
    entries.map(([topic, handler]) => {
      checkEventTopic(topic);
      if (typeof handler !== 'function') {
        throw new InvalidArgumentError(
          `The handler of topic "${topic}" must be a function: one of yours, or what webhook() returns.`,
        );
      }
      return [topic, handler as OutboxHandler];
    }),
  );
}
