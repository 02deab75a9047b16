import type { Driver } from '../../drivers/driver.js';

/** PostgreSQL refuses notifications of 8,000 bytes and more. */
const MAX_PAYLOAD_BYTES = 7_500;

/**
 * Tells other processes of which workflows there is news. Apart from the writes, since a NOTIFY inside a transaction takes a
 * lock that all commits of the database share. Losing one costs its waiter a poll.
 */
export class IdAnnouncer {
  readonly #driver: Driver;
  readonly #channel: string;
  readonly #collectMs: number;
  #workflowIds = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param collectMs How long IDs are collected before they are sent, in milliseconds. */
  constructor(driver: Driver, channel: string, collectMs: number) {
    this.#driver = driver;
    this.#channel = channel;
    this.#collectMs = collectMs;
  }

  announce(workflowId: string): void {
    if (this.#closed) return;
    this.#workflowIds.add(workflowId);
    this.#timer ??= setTimeout(() => void this.#send(), this.#collectMs);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #send(): Promise<void> {
    const list = JSON.stringify([...this.#workflowIds]);
    this.#workflowIds = new Set();
    // The empty payload means "any": too many to name.
    const payload = Buffer.byteLength(list) <= MAX_PAYLOAD_BYTES ? list : '';
    try {
      await this.#driver.query('SELECT pg_notify($1::text, $2::text)', [this.#channel, payload], {
        prepare: 'holdfast_notify',
      });
    } catch {
      // A hint that was not given: pollers find what is new.
    } finally {
      this.#timer = undefined;
      if (this.#workflowIds.size > 0 && !this.#closed) {
        this.#timer = setTimeout(() => void this.#send(), this.#collectMs);
      }
    }
  }
}
