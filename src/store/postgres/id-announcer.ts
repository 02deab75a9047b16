import { randomUUID } from 'node:crypto';
import type { Driver } from '../../drivers/driver.js';

/** PostgreSQL refuses notifications of 8,000 bytes and more. */
const MAX_PAYLOAD_BYTES = 7_500;

/**
 * Tells other processes of which workflows there is news: the first time at once, and whatever comes soon after it together.
 * Apart from the writes, since a NOTIFY inside a transaction takes a lock that all commits of the database share. Losing one
 * costs its waiter a poll.
 */
export class IdAnnouncer {
  readonly #driver: Driver;
  readonly #channel: string;
  readonly #gapMs: number;
  /** When the last notification was sent (monotonic). */
  #sentAt = -Infinity;
  #workflowIds = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Stands for "any": too many to name. Whoever sent it knows it again, and nobody takes it for a list. */
  readonly #any = randomUUID();

  /** @param gapMs Least time between two notifications, in milliseconds. */
  constructor(driver: Driver, channel: string, gapMs: number) {
    this.#driver = driver;
    this.#channel = channel;
    this.#gapMs = gapMs;
  }

  announce(workflowId: string): void {
    if (this.#closed) return;
    this.#workflowIds.add(workflowId);
    this.#timer ??= this.#arm();
  }

  /** Whether this is what this announcer sends where there is too much news to name. */
  isOwn(payload: string): boolean {
    return payload === this.#any;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Never within the current round of the event loop: what one flush has recorded is announced together. */
  #arm(): NodeJS.Timeout {
    return setTimeout(() => void this.#send(), Math.max(0, this.#sentAt + this.#gapMs - performance.now()));
  }

  async #send(): Promise<void> {
    this.#sentAt = performance.now();
    const list = JSON.stringify([...this.#workflowIds]);
    this.#workflowIds = new Set();
    const payload = Buffer.byteLength(list) <= MAX_PAYLOAD_BYTES ? list : this.#any;
    try {
      await this.#driver.query('SELECT pg_notify($1::text, $2::text)', [this.#channel, payload], {
        prepare: 'holdfast_notify',
      });
    } catch {
      // A hint that was not given: pollers find what is new.
    } finally {
      this.#timer = this.#workflowIds.size > 0 && !this.#closed ? this.#arm() : undefined;
    }
  }
}
