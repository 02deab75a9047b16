import { runOutsideScope } from '../engine/scope.js';

/**
 * Runs an action again and again, never twice at once, with a wait in between. It can be woken before its time; wakes during
 * a run lead to one more run. The action must not reject.
 */
export class Repeater {
  readonly #action: () => Promise<void>;
  readonly #waitMs: () => number;
  #timer: NodeJS.Timeout | undefined;
  #current: Promise<void> | undefined;
  #woken = false;
  #stopped = true;

  constructor(action: () => Promise<void>, waitMs: () => number) {
    this.#action = action;
    this.#waitMs = waitMs;
  }

  start(): void {
    this.#stopped = false;
    this.#arm();
  }

  wake(): void {
    if (this.#stopped) return;
    if (this.#current !== undefined) {
      this.#woken = true;
      return;
    }
    clearTimeout(this.#timer);
    runOutsideScope(() => {
      this.#run();
    });
  }

  /** Resolves when a run that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#current;
  }

  #arm(): void {
    this.#timer = setTimeout(() => {
      this.#run();
    }, this.#waitMs());
  }

  #run(): void {
    this.#current = this.#action().finally(() => {
      this.#current = undefined;
      if (this.#stopped) return;
      if (this.#woken) {
        this.#woken = false;
        this.#run();
      } else {
        this.#arm();
      }
    });
  }
}
