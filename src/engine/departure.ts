import * as why from './execution-errors.js';

/** The end of an execution, for everyone in it who has to stop then. Reason and signal are made when somebody asks. */
export class Departure {
  #listeners: Set<(reason: Error) => void> | undefined;
  #isDecided = false;
  #reason: Error | undefined;
  #controller: AbortController | undefined;

  /** A workflow that simply returns needs no error, and its stack would cost more than its end. */
  get reason(): Error {
    return (this.#reason ??= why.hasReturned());
  }

  /** Fires at the end. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isDecided) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** Calls back once, at the end; at once when that has come. Returns how to take that back. */
  on(callback: (reason: Error) => void): () => void {
    if (this.#isDecided) {
      callback(this.reason);
      return () => undefined;
    }
    const listeners = (this.#listeners ??= new Set());
    listeners.add(callback);
    return () => {
      listeners.delete(callback);
    };
  }

  /** From here on it is over, for this reason; undefined: the workflow has returned. */
  decide(reason: Error | undefined): void {
    this.#isDecided = true;
    this.#reason = reason;
  }

  /** Tells everyone. */
  announce(): void {
    if (this.#controller !== undefined) this.#controller.abort(this.reason);
    if (this.#listeners === undefined) return;
    for (const callback of this.#listeners) callback(this.reason);
    this.#listeners.clear();
  }
}
