import type { Driver } from '../../drivers/driver.js';

/** Least time between two notifications of one process, in milliseconds. */
const GAP_MS = 10;

/**
 * Tells executors that there is something to claim: the first time at once, and whatever comes soon after it together. Apart
 * from the writes, since a NOTIFY inside a transaction takes a lock that all commits of the database share. Losing one costs
 * a poll.
 */
export class WorkAnnouncer {
  readonly #driver: Driver;
  readonly #channel: string;
  #isAsked = false;
  #isBusy = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(driver: Driver, channel: string) {
    this.#driver = driver;
    this.#channel = channel;
  }

  announce(): void {
    if (this.#closed) return;
    this.#isAsked = true;
    if (!this.#isBusy) void this.#send();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #send(): Promise<void> {
    this.#isBusy = true;
    this.#isAsked = false;
    try {
      await this.#driver.query('SELECT pg_notify($1::text, $2::text)', [this.#channel, ''], {
        prepare: 'holdfast_notify',
      });
    } catch {
      // A hint that was not given: pollers find the work.
    }
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#isBusy = false;
      if (this.#isAsked) void this.#send();
    }, GAP_MS);
    this.#timer.unref();
  }
}
