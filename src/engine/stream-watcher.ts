import { HoldfastClosedError } from '../errors/usage-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { StreamPosition, StreamReads } from '../store/stream-store.js';
import { runOutsideScope } from './scope.js';

/** Positions asked about in one query. */
const MAX_POSITIONS_PER_QUERY = 10_000;

/**
 * Everyone in this process who reads a stream to its end and waits for more. Woken by hints and, since hints get lost, by one
 * query a poll for all that wait.
 */
export class StreamWatcher {
  readonly #reads: StreamReads;
  readonly #pollMs: number;
  readonly #runtime: Runtime;
  readonly #watches = new Map<string, Set<StreamWatch>>();
  #cancelPoll: (() => void) | undefined;
  #closed = false;

  constructor(reads: StreamReads, pollMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#reads = reads;
    this.#pollMs = pollMs;
  }

  /** From now on hints for this workflow are noticed. To be ended. */
  watch(workflowId: string): StreamWatch {
    this.assertOpen();
    const watch = new StreamWatch(() => {
      const set = this.#watches.get(workflowId);
      set?.delete(watch);
      if (set?.size === 0) this.#watches.delete(workflowId);
    });
    let set = this.#watches.get(workflowId);
    if (set === undefined) {
      set = new Set();
      this.#watches.set(workflowId, set);
    }
    set.add(watch);
    this.#cancelPoll ??= runOutsideScope(() => this.#pollLater());
    return watch;
  }

  /** Somebody hints that there is something in streams of these; null: that there may be in any. */
  hint(workflowIds: readonly string[] | null): void {
    for (const workflowId of workflowIds ?? this.#watches.keys()) {
      for (const watch of this.#watches.get(workflowId) ?? []) watch.hint();
    }
  }

  close(): void {
    this.#closed = true;
    this.#cancelPoll?.();
    for (const set of this.#watches.values()) for (const watch of set) watch.fail(closedError());
  }

  /** @throws HoldfastClosedError */
  assertOpen(): void {
    if (this.#closed) throw closedError();
  }

  async #poll(): Promise<void> {
    const waiting: { readonly watch: StreamWatch; readonly position: StreamPosition }[] = [];
    for (const set of this.#watches.values()) {
      for (const watch of set) if (watch.position !== undefined) waiting.push({ watch, position: watch.position });
    }
    for (let from = 0; from < waiting.length && !this.#closed; from += MAX_POSITIONS_PER_QUERY) {
      const asked = waiting.slice(from, from + MAX_POSITIONS_PER_QUERY);
      try {
        for (const place of await this.#reads.changedStreams(asked.map(({ position }) => position))) {
          asked[place]?.watch.hint();
        }
      } catch (error) {
        // Closed, or refused as such: all who wait are concerned. Who has failed already keeps its first reason.
        for (const { watch } of asked) watch.fail(error);
      }
    }
    this.#cancelPoll = this.#watches.size > 0 && !this.#closed ? this.#pollLater() : undefined;
  }

  #pollLater(): () => void {
    return this.#runtime.startTimer(this.#pollMs, () => void this.#poll());
  }
}

function closedError(): HoldfastClosedError {
  return new HoldfastClosedError(
    'This Holdfast is closed. The stream goes on: read it with another one, from the offset after the last one you got.',
  );
}

/** One reader's. */
export class StreamWatch {
  readonly #forget: () => void;
  #isHinted = false;
  #failure: { readonly error: unknown } | undefined;
  #waiting:
    | { readonly position: StreamPosition; readonly resolve: () => void; readonly reject: (error: unknown) => void }
    | undefined;

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  /** Where the reader waits; undefined while it reads. */
  get position(): StreamPosition | undefined {
    return this.#waiting?.position;
  }

  /** Resolves when there may be something new; at once when there was a hint since the last time. */
  async changed(position: StreamPosition): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (!this.#isHinted) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting = { position, resolve, reject };
      });
    }
    this.#isHinted = false;
  }

  hint(): void {
    this.#isHinted = true;
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  end(): void {
    this.#forget();
  }
}
