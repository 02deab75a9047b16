import type { Driver } from '../../drivers/driver.js';

/** How long outcomes are collected before other processes are told, in milliseconds. */
const COLLECT_MS = 20;
/** PostgreSQL refuses notifications of 8,000 bytes and more. */
const MAX_PAYLOAD_BYTES = 7_500;

/**
 * Tells other processes which workflows have outcomes. Apart from the writes, since a NOTIFY inside a transaction takes a
 * lock that all commits of the database share. Losing one costs its waiter a poll.
 */
export class OutcomeAnnouncer {
  readonly #driver: Driver;
  readonly #channel: string;
  #workflowIds: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(driver: Driver, channel: string) {
    this.#driver = driver;
    this.#channel = channel;
  }

  announce(workflowId: string): void {
    if (this.#closed) return;
    this.#workflowIds.push(workflowId);
    this.#timer ??= setTimeout(() => void this.#send(), COLLECT_MS);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #send(): Promise<void> {
    const workflowIds = this.#workflowIds;
    this.#workflowIds = [];
    const list = JSON.stringify(workflowIds);
    // The empty payload means "any": too many to name.
    const payload = Buffer.byteLength(list) <= MAX_PAYLOAD_BYTES ? list : '';
    try {
      await this.#driver.query('SELECT pg_notify($1::text, $2::text)', [this.#channel, payload], {
        prepare: 'holdfast_notify',
      });
    } catch {
      // A hint that was not given: pollers find the outcome.
    } finally {
      this.#timer = undefined;
      if (this.#workflowIds.length > 0 && !this.#closed) {
        this.#timer = setTimeout(() => void this.#send(), COLLECT_MS);
      }
    }
  }
}
