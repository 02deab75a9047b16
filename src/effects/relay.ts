import type { Logger } from '../api/logger.js';
import { retryDelayMs } from '../engine/step-attempts.js';
import type { Serializer } from '../engine/serializer.js';
import { codeOf } from '../errors/error-code.js';
import { NonRetryableError } from '../errors/step-errors.js';
import { HoldfastClosedError } from '../errors/usage-errors.js';
import { elapsedMs, thisMoment, type Moment } from '../fleet/moment.js';
import { Repeater } from '../fleet/repeater.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ClaimedEvent, EventOutcome, OutboxStore } from '../store/outbox-store.js';
import { Delivery, type DeliveryEnd } from './delivery.js';
import type { RelaySettings } from './outbox-settings.js';

/**
 * How much longer than an attempt may take a relay has an event, in milliseconds: for the way from the claim to the handler and from
 * there to the record.
 */
const LEASE_MARGIN_MS = 15_000;

/** What a relay has counted since launch. */
export interface RelayCounters {
  delivered: number;
  /** Attempts that failed. */
  failures: number;
  /** Events that became dead. */
  dead: number;
}

export interface RelayParts {
  readonly runtime: Runtime;
  readonly store: Pick<OutboxStore, 'claim' | 'settle'>;
  readonly serializer: Serializer;
  readonly logger: Logger;
  readonly settings: RelaySettings;
  /** Longest wait between two looks, in milliseconds: hints get lost. */
  readonly pollMs: number;
}

/**
 * Delivers events of the topics that this process has handlers for. Each topic has its own slots, so that one whose receiver is slow
 * or dead does not hold up the others.
 *
 * The database decides which relay gets an event, for as long as a lease. A handler begins only while the lease lasts for longer than
 * it may take, by this process's clocks; so two relays deliver one event at the same time only if a process is stopped, or a handler
 * does not end in its time.
 */
export class Relay {
  readonly counters: RelayCounters = { delivered: 0, failures: 0, dead: 0 };
  readonly #parts: RelayParts;
  readonly #leaseMs: number;
  readonly #repeater: Repeater;
  /** By topic and event; those whose handler has not settled among them. */
  readonly #busy = new Map<string, Map<string, Delivery>>();
  readonly #running = new Set<Promise<void>>();
  #isStopping = false;

  constructor(parts: RelayParts) {
    this.#parts = parts;
    this.#leaseMs = parts.settings.timeoutMs + LEASE_MARGIN_MS;
    this.#repeater = new Repeater(
      parts.runtime,
      () => this.#claim(),
      () => parts.pollMs * (0.75 + parts.runtime.random() / 2),
    );
    for (const topic of parts.settings.handlers.keys()) this.#busy.set(topic, new Map());
  }

  start(): void {
    if (this.#busy.size === 0) return;
    this.#repeater.start();
    this.#repeater.wake();
  }

  /** There may be something to deliver. */
  wake(): void {
    this.#repeater.wake();
  }

  /** Claims nothing any more, and waits for what is under way. */
  async drain(): Promise<void> {
    this.#isStopping = true;
    await this.#repeater.stop();
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /**
   * Interrupts what is still under way, and gives it back once its handler has settled. What a handler goes on with is left to its
   * lease, so that nobody delivers it at the same time.
   */
  async stop(): Promise<void> {
    const reason = new HoldfastClosedError('This Holdfast is closing: the delivery is left to another executor.');
    for (const deliveries of this.#busy.values())
      for (const delivery of deliveries.values()) delivery.interrupt(reason);
    await this.drain();
  }

  async #claim(): Promise<void> {
    const { runtime, store, settings, logger } = this.#parts;
    const rooms = [...this.#busy].map(([topic, { size }]) => ({ topic, limit: settings.concurrency - size }));
    const topics = rooms.filter(({ limit }) => limit > 0);
    if (topics.length === 0) return;
    const sent = thisMoment(runtime);
    let claimed: readonly ClaimedEvent[];
    try {
      claimed = await store.claim(topics, this.#leaseMs);
    } catch (error) {
      logger.warn('The outbox could not be read.', { code: codeOf(error) });
      return;
    }
    for (const event of claimed) {
      const delivering = this.#deliver(event, sent).finally(() => {
        this.#running.delete(delivering);
      });
      this.#running.add(delivering);
    }
  }

  /** Never rejects. */
  async #deliver(claimed: ClaimedEvent, claimedAt: Moment): Promise<void> {
    const { runtime, settings, serializer } = this.#parts;
    const { retries, handlers, timeoutMs } = settings;
    const handler = handlers.get(claimed.topic);
    const isLate = elapsedMs(runtime, claimedAt) > this.#leaseMs - timeoutMs;
    if (handler === undefined || isLate || this.#isStopping) {
      await this.#settle(claimed, { kind: 'released' });
      return;
    }
    const busy = this.#busy.get(claimed.topic);
    // A handler here goes on with it long after its time. Left to the lease: nobody else begins meanwhile either.
    if (busy?.get(claimed.eventId)?.isHandling === true) return;
    if (claimed.attempts > retries.maxAttempts) {
      // No relay lived to say what came of the last one.
      await this.#bury(claimed, { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED', error: null });
      return;
    }
    const delivery = new Delivery({ runtime, claimed, handler, serializer, timeoutMs });
    busy?.set(claimed.eventId, delivery);
    await this.#finish(claimed, claimedAt, delivery, await delivery.run());
    // The slot of a handler that goes on after its time is not free.
    void delivery.handled().then(() => {
      // It may be tried again by now.
      if (busy?.get(claimed.eventId) === delivery) busy.delete(claimed.eventId);
      this.wake();
    });
  }

  async #finish(claimed: ClaimedEvent, claimedAt: Moment, delivery: Delivery, end: DeliveryEnd): Promise<void> {
    const { runtime } = this.#parts;
    switch (end.kind) {
      case 'delivered':
        if (await this.#settle(claimed, { kind: 'delivered' })) this.counters.delivered += 1;
        break;
      case 'interrupted':
        await delivery.handled();
        await this.#settle(claimed, { kind: 'released' });
        break;
      case 'failed':
        this.counters.failures += 1;
        // A handler that goes on after its time keeps the event for as long as the lease lasts: no other relay begins meanwhile.
        if (delivery.isHandling) {
          const waited = await delivery.overtime(this.#leaseMs - elapsedMs(runtime, claimedAt));
          if (waited === 'interrupted') return;
        }
        await this.#fail(claimed, end.error);
        break;
    }
  }

  async #fail(claimed: ClaimedEvent, error: unknown): Promise<void> {
    const { runtime, settings } = this.#parts;
    const { retries } = settings;
    const text = await this.#encodeError(error);
    if (error instanceof NonRetryableError || !isWorthRetrying(settings, error, claimed.attempts)) {
      await this.#bury(claimed, { kind: 'dead', reason: 'REFUSED', error: text });
    } else if (claimed.attempts >= retries.maxAttempts) {
      await this.#bury(claimed, { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED', error: text });
    } else {
      const delayMs = Math.ceil(retryDelayMs(retries, error, claimed.attempts, runtime));
      await this.#settle(claimed, { kind: 'retry', delayMs, error: text });
    }
  }

  async #bury(claimed: ClaimedEvent, outcome: Extract<EventOutcome, { readonly kind: 'dead' }>): Promise<void> {
    if (!(await this.#settle(claimed, outcome))) return;
    this.counters.dead += 1;
    const { eventId, topic, attempts } = claimed;
    // Not the error, which may hold anything; it is listed with the event.
    this.#parts.logger.error('An event of the outbox cannot be delivered; it waits for a person.', {
      eventId,
      topic,
      attempts,
      reason: outcome.reason,
    });
  }

  /** Whether it is on record. What is not is delivered again when the lease is over. */
  async #settle({ eventId, token, topic }: ClaimedEvent, outcome: EventOutcome): Promise<boolean> {
    const { store, logger } = this.#parts;
    try {
      const answer = await store.settle({ eventId, token, outcome });
      if (answer.kind === 'refused') throw answer.error;
      return answer.kind === 'settled';
    } catch (error) {
      logger.warn('What came of a delivery could not be recorded.', { eventId, topic, code: codeOf(error) });
      return false;
    }
  }

  async #encodeError(error: unknown): Promise<string> {
    const { serializer } = this.#parts;
    try {
      return await serializer.encodeError(error);
    } catch (codecError) {
      // The codec fails, so without what may only be stored through it.
      return JSON.stringify(`An error that could not be encoded: ${codeOf(codecError) ?? 'unknown'}.`);
    }
  }
}

/** A predicate that fails has not asked for another attempt. */
function isWorthRetrying({ retries }: RelaySettings, error: unknown, attempt: number): boolean {
  try {
    return retries.shouldRetry?.(error, attempt) ?? true;
  } catch {
    return false;
  }
}
