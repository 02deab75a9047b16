const SETTLED = Promise.resolve();

/** Something that lives in the world: a process, or what is always there. */
export class Actor {
  readonly name: string;
  /** Nothing reaches it any more. */
  isDead = false;
  /** Until when nothing reaches it though it lives, in virtual milliseconds. */
  pausedUntil = 0;

  constructor(name: string) {
    this.name = name;
  }
}

export interface Happening {
  at: number;
  readonly order: number;
  /** Whom it reaches; undefined: it happens in the database or in the network. */
  readonly to: Actor | undefined;
  readonly happen: () => void;
  isCancelled: boolean;
}

/**
 * Virtual time. One thing happens at a time; before the next one, all that it has settled has run: the queue of promise reactions is
 * empty. So nothing but the order of what happens, and what is drawn by seed, decides what a run does.
 */
export class World {
  #now: number;
  #order = 0;
  #happened = 0;
  #digest = 0;
  readonly #heap: Happening[] = [];

  constructor(startMs: number) {
    this.#now = startMs;
  }

  /** Milliseconds since 1970. */
  get now(): number {
    return this.#now;
  }

  /** How many things have happened. */
  get happened(): number {
    return this.#happened;
  }

  /** Of all that has happened: two runs with the same one have taken the same path. */
  get digest(): number {
    return this.#digest;
  }

  /** What is due at one moment happens in the order of these calls. */
  in(ms: number, to: Actor | undefined, happen: () => void): Happening {
    const happening = { at: this.#now + ms, order: this.#order++, to, happen, isCancelled: false };
    push(this.#heap, happening);
    return happening;
  }

  /** Lets things happen until one says so, or that many have, or that moment has come. Whether one said so. */
  run(isOver: () => boolean, limit: { readonly untilMs: number; readonly happenings: number }): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        try {
          if (isOver()) {
            resolve(true);
            return;
          }
          if (this.#happened >= limit.happenings || !this.#next(limit.untilMs)) {
            resolve(false);
            return;
          }
        } catch (error) {
          reject(error);
          return;
        }
        void SETTLED.then(turnLater);
      };
      // A tick that a promise reaction asks for comes when no reaction is left; one that a tick asks for would come before them.
      const turnLater = (): void => {
        process.nextTick(turn);
      };
      turn();
    });
  }

  #next(untilMs: number): boolean {
    for (;;) {
      const next = pop(this.#heap);
      if (next === undefined || next.at > untilMs) return false;
      if (next.isCancelled || next.to?.isDead === true) continue;
      if (next.to !== undefined && next.to.pausedUntil > next.at) {
        // Orders stay: what reached it first while it stood still is what it sees first.
        next.at = next.to.pausedUntil;
        push(this.#heap, next);
        continue;
      }
      this.#now = Math.max(this.#now, next.at);
      this.#happened += 1;
      this.#digest = (Math.imul(this.#digest, 31) + next.order + Math.floor(next.at * 1_000)) | 0;
      next.happen();
      return true;
    }
  }
}

function isBefore(one: Happening, other: Happening): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

function push(heap: Happening[], happening: Happening): void {
  let place = heap.length;
  heap.push(happening);
  while (place > 0) {
    const above = (place - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || isBefore(parent, happening)) break;
    heap[place] = parent;
    place = above;
  }
  heap[place] = happening;
}

function pop(heap: Happening[]): Happening | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let place = 0;
  for (;;) {
    let below = 2 * place + 1;
    let child = heap[below];
    const right = heap[below + 1];
    if (child !== undefined && right !== undefined && isBefore(right, child)) {
      below += 1;
      child = right;
    }
    if (child === undefined || isBefore(last, child)) break;
    heap[place] = child;
    place = below;
  }
  heap[place] = last;
  return first;
}
