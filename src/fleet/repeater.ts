import { runOutsideScope } from '../engine/scope.js';
import type { Runtime } from '../runtime/runtime.js';

/**
 * Runs an action again and again, never twice at once, with a wait in between. It can be woken before its time; wakes during
 * a run lead to one more run. The action must not reject.
 */
export class Repeater {
  readonly #runtime: Runtime;
  readonly #action: () => Promise<void>;
  readonly #waitMs: () => number;
  #cancel: (() => void) | undefined;
  #current: Promise<void> | undefined;
  #woken = false;
  #stopped = true;

  constructor(runtime: Runtime, action: () => Promise<void>, waitMs: () => number) {
    this.#runtime = runtime;
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
    this.#cancel?.();
    runOutsideScope(() => {
      this.#run();
    });
  }

  /** Resolves when a run that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#current;
  }

  #arm(): void {
    this.#cancel = this.#runtime.startTimer(this.#waitMs(), () => {
      this.#run();
    });
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
