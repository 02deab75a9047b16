import { HoldfastClosedError } from '../errors/usage-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import { runOutsideScope } from './scope.js';
import type { Watch, Watches } from './watch.js';

/** Places asked about in one query. */
const MAX_PLACES_PER_QUERY = 10_000;

/** What is found at these places, in their order; undefined where there is nothing. */
type Ask<Place, Found> = (places: readonly Place[]) => Promise<readonly (Found | undefined)[]>;

interface OpenWatch<Place, Found> {
  readonly place: Place;
  isHinted: boolean;
  waiting: { readonly resolve: (found: Found) => void; readonly reject: (cause: Error) => void } | undefined;
}

/**
 * Everyone in this process who waits for something to come to a place: a message to a topic, an event to be set. It is
 * learnt from hints and, since hints get lost, from one query a poll for all that wait.
 */
export class Watcher<Place extends { readonly workflowId: string }, Found> implements Watches<Place, Found> {
  readonly #ask: Ask<Place, Found>;
  readonly #pollMs: number;
  readonly #runtime: Runtime;
  /** In the order in which they began. */
  readonly #open = new Map<string, Set<OpenWatch<Place, Found>>>();
  readonly #toCheck = new Set<OpenWatch<Place, Found>>();
  #checkScheduled = false;
  #cancelPoll: (() => void) | undefined;
  #closed = false;

  constructor(ask: Ask<Place, Found>, pollMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#ask = ask;
    this.#pollMs = pollMs;
  }

  watch(place: Place): Watch<Found> {
    const watch: OpenWatch<Place, Found> = { place, isHinted: false, waiting: undefined };
    let set = this.#open.get(place.workflowId);
    if (set === undefined) {
      set = new Set();
      this.#open.set(place.workflowId, set);
    }
    set.add(watch);
    return {
      next: () => this.#next(watch),
      stop: () => {
        watch.waiting = undefined;
        this.#toCheck.delete(watch);
        set.delete(watch);
        if (set.size === 0 && this.#open.get(place.workflowId) === set) this.#open.delete(place.workflowId);
      },
    };
  }

  check(workflowIds: Iterable<string> | null): void {
    for (const workflowId of workflowIds ?? this.#open.keys()) {
      for (const watch of this.#open.get(workflowId) ?? []) {
        watch.isHinted = true;
        if (watch.waiting !== undefined) this.#toCheck.add(watch);
      }
    }
    this.#scheduleCheck();
  }

  close(): void {
    this.#closed = true;
    this.#cancelPoll?.();
    for (const watch of this.#waiting()) settle(watch)?.reject(closedError());
    this.#open.clear();
  }

  #next(watch: OpenWatch<Place, Found>): Promise<Found> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(closedError());
        return;
      }
      watch.waiting = { resolve, reject };
      if (watch.isHinted) {
        this.#toCheck.add(watch);
        this.#scheduleCheck();
      }
      this.#cancelPoll ??= runOutsideScope(() => this.#pollLater());
    });
  }

  #scheduleCheck(): void {
    if (this.#toCheck.size === 0 || this.#checkScheduled) return;
    this.#checkScheduled = true;
    runOutsideScope(() =>
      this.#runtime.nextTurn(() => {
        this.#checkScheduled = false;
        const asked = [...this.#toCheck];
        this.#toCheck.clear();
        void this.#look(asked);
      }),
    );
  }

  async #poll(): Promise<void> {
    await this.#look(this.#waiting());
    this.#cancelPoll = this.#open.size > 0 && !this.#closed ? this.#pollLater() : undefined;
  }

  #pollLater(): () => void {
    return this.#runtime.startTimer(this.#pollMs, () => void this.#poll());
  }

  #waiting(): OpenWatch<Place, Found>[] {
    return [...this.#open.values()].flatMap((set) => [...set].filter(({ waiting }) => waiting !== undefined));
  }

  async #look(watches: readonly OpenWatch<Place, Found>[]): Promise<void> {
    for (let from = 0; from < watches.length; from += MAX_PLACES_PER_QUERY) {
      const asked = watches.slice(from, from + MAX_PLACES_PER_QUERY);
      // What is hinted at from here on may come too late for this query.
      for (const watch of asked) watch.isHinted = false;
      try {
        const found = await this.#ask(asked.map(({ place }) => place));
        asked.forEach((watch, index) => {
          const there = found[index];
          if (there !== undefined) settle(watch)?.resolve(there);
        });
      } catch (error) {
        // Closed, or refused as such: that concerns all who wait.
        for (const watch of asked) settle(watch)?.reject(error instanceof Error ? error : closedError());
      }
    }
  }
}

/** Takes the promise out, so that it is settled once. */
function settle<Place, Found>(watch: OpenWatch<Place, Found>): OpenWatch<Place, Found>['waiting'] {
  const { waiting } = watch;
  watch.waiting = undefined;
  return waiting;
}

function closedError(): HoldfastClosedError {
  return new HoldfastClosedError('This Holdfast was closed while somebody waited. Ask another one.');
}
