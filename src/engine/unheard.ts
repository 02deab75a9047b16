import type { Runtime } from '../runtime/runtime.js';

/**
 * Workflows that were enqueued here a moment ago, and of whose end nothing has been heard since: whoever begins to wait for
 * one of them has nothing to ask the database yet, and learns the outcome like everyone who waits already. With 2,000 handles
 * waited for at once, asking in vain was a tenth of a drain's server time.
 *
 * Forgotten after one to two `keepMs`, since not every handle is waited for; then the database is asked, as it is about any other.
 */
export class Unheard {
  readonly #runtime: Runtime;
  readonly #keepMs: number;
  #recent = new Set<string>();
  #older = new Set<string>();
  /** When those of `#recent` began to be collected. */
  #since = -Infinity;

  constructor(runtime: Runtime, keepMs: number) {
    this.#runtime = runtime;
    this.#keepMs = keepMs;
  }

  /** To be called before it can have ended: before it is enqueued. */
  add(workflowId: string): void {
    this.#forgetOld();
    this.#recent.add(workflowId);
  }

  /** Something may have become of these; null: of any. */
  heardOf(workflowIds: Iterable<string> | null): void {
    if (workflowIds === null) {
      this.clear();
      return;
    }
    for (const workflowId of workflowIds) {
      if (!this.#recent.delete(workflowId)) this.#older.delete(workflowId);
    }
  }

  has(workflowId: string): boolean {
    this.#forgetOld();
    return this.#recent.has(workflowId) || this.#older.has(workflowId);
  }

  clear(): void {
    this.#recent = new Set();
    this.#older = new Set();
  }

  #forgetOld(): void {
    const now = this.#runtime.now();
    if (now - this.#since < this.#keepMs) return;
    this.#older = now - this.#since < 2 * this.#keepMs ? this.#recent : new Set();
    this.#recent = new Set();
    this.#since = now;
  }
}
