/** The only source of time of a memory store, and of the pauses of those who wait for it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Ends early, without throwing, when the signal fires. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** Time that moves only when it is told to. */
export class VirtualClock implements Clock {
  #now: number;
  readonly #sleepers: Sleeper[] = [];

  /** @param startMs Milliseconds since 1970. */
  constructor(startMs = 0) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  /** When the next pause ends, in milliseconds since 1970; undefined: nobody pauses. */
  nextWakeUp(): number | undefined {
    return this.#sleepers[0]?.at;
  }

  /** Moves time on, and ends the pauses that end meanwhile, in their order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let first = this.#sleepers[0]; first !== undefined && first.at <= until; first = this.#sleepers[0]) {
      this.#now = Math.max(this.#now, first.at);
      this.#sleepers.shift();
      first.wake();
    }
    this.#now = until;
  }

  pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        at: this.#now + ms,
        wake: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      const onAbort = (): void => {
        this.#sleepers.splice(this.#sleepers.indexOf(sleeper), 1);
        resolve();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const place = this.#sleepers.findIndex(({ at }) => at > sleeper.at);
      this.#sleepers.splice(place === -1 ? this.#sleepers.length : place, 0, sleeper);
    });
  }
}
