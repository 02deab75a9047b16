import type { Runtime } from '../runtime/runtime.js';
import type { RecordedStep } from '../store/store.js';
import { nextTurn } from './timer.js';

/**
 * How long a replay may stand still, with calls waiting that nothing recorded can answer, before the code is taken to be
 * another than the one that was recorded. Milliseconds.
 */
export const REPLAY_STALL_MS = 10_000;

const NOTHING = new Map<number, RecordedStep>();

/** A call that waits for its turn. */
interface Called {
  readonly resolve: () => void;
  isReady: boolean;
}

/**
 * Hands a workflow its recorded results in the order in which they were recorded, one at a time, and lets the code come
 * to rest after each. Code that is deterministic between its awaits therefore takes the same path again: nested parallel
 * branches number their steps alike, and a race has the same winner.
 *
 * Work that is not recorded waits until everything recorded has been handed out, so that code which no longer fits its
 * history is found before any further step body runs.
 */
export class Replay {
  readonly #runtime: Runtime;
  readonly #bySeq: Map<number, RecordedStep>;
  /** In the order of recordVersion. Started children are handed out like results; open sleeps and the like are not. */
  readonly #ordered: readonly RecordedStep[];
  readonly #called = new Map<number, Called>();
  readonly #liveCalls: (() => void)[] = [];
  readonly #onlookers: (() => void)[] = [];
  readonly #followers: (() => void)[] = [];
  readonly #onStall: (next: RecordedStep) => void;
  #cursor = 0;
  #lastSeq = -1;
  /** The highest number of a step whose body may have begun, and of which no end is on record; -1 for none. */
  #lastOpenStep = -1;
  /** The highest number that the code has come to. */
  #asked = -1;
  #pumping = false;
  #cancelStall: (() => void) | undefined;
  #stopStanding: (() => void) | undefined;

  constructor(runtime: Runtime, history: readonly RecordedStep[], onStall: (next: RecordedStep) => void) {
    this.#runtime = runtime;
    this.#bySeq = history.length === 0 ? NOTHING : new Map<number, RecordedStep>();
    for (const step of history) {
      this.#bySeq.set(step.seq, step);
      this.#lastSeq = Math.max(this.#lastSeq, step.seq);
      if (step.kind === 'step' && !step.complete) this.#lastOpenStep = Math.max(this.#lastOpenStep, step.seq);
    }
    this.#ordered = history.filter((step) => step.complete || step.kind === 'start' || step.kind === 'enqueue');
    this.#onStall = onStall;
  }

  /**
   * Whether all that is recorded has been handed out, and whoever waited for that has gone on: a later call does not overtake
   * an earlier one.
   */
  get isOver(): boolean {
    return this.#cursor >= this.#ordered.length && this.#liveCalls.length === 0;
  }

  /**
   * Whether it is over, and the code has also come to the steps that have begun and have no end on record: by then it is where it was.
   * Nothing hands those out, and code may come to them late, after something that is not durable.
   */
  get isFollowed(): boolean {
    return this.isOver && this.#asked >= this.#lastOpenStep;
  }

  /** The highest number under which something is recorded; -1 for none. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The next recorded result that the code has not asked for. */
  get next(): RecordedStep | undefined {
    return this.#ordered[this.#cursor];
  }

  find(seq: number): RecordedStep | undefined {
    return this.#bySeq.get(seq);
  }

  /** The code has come to the call of this number. Returns what is recorded for it. */
  ask(seq: number): RecordedStep | undefined {
    this.#asked = Math.max(this.#asked, seq);
    this.#tellFollowers();
    return this.find(seq);
  }

  /**
   * Resolves when it is this recorded result's turn, and `ready` has resolved: what comes after it waits for that. So a result
   * that takes its time to be decoded does not reach the code behind a later one.
   */
  turnOf(step: RecordedStep, ready?: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const called: Called = { resolve, isReady: ready === undefined };
      this.#called.set(step.seq, called);
      if (ready === undefined) this.#pump();
      else
        void ready.then(() => {
          called.isReady = true;
          this.#pump();
        });
    });
  }

  /** Resolves when the replay is over; in the order of the calls. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      this.#liveCalls.push(resolve);
      this.#pump();
    });
  }

  /**
   * The code has ended: hands out what it has asked for all the same, by the loser of a race or by what it has left running
   * in the background. Returns what it has not asked for.
   */
  async end(): Promise<RecordedStep | undefined> {
    if (this.isOver) return undefined;
    await nextTurn(this.#runtime);
    const { next } = this;
    if (next === undefined || !this.#called.has(next.seq)) return next;
    await this.over();
    return undefined;
  }

  /** Resolves when the replay is over and the code at rest, for who only looks: no call that the code waits for. */
  async whenAtRest(): Promise<void> {
    if (!this.isOver) {
      await new Promise<void>((resolve) => {
        this.#onlookers.push(resolve);
      });
    }
    await nextTurn(this.#runtime);
  }

  /** The same, when the code has also come to the steps that have no end on record. */
  async whenFollowed(): Promise<void> {
    if (!this.isFollowed) {
      await new Promise<void>((resolve) => {
        this.#followers.push(resolve);
      });
    }
    await nextTurn(this.#runtime);
  }

  /**
   * For a replay that is only to bring the code where it was: resolves when it is followed and the code has come to rest; when the code has
   * ended, or stands still, without asking for something, that is returned. Rejects when it is stopped.
   */
  async settled(ended: Promise<unknown>): Promise<RecordedStep | undefined> {
    const left = ended.then(() => this.end());
    for (let seen = -1; !this.isOver && seen < this.#cursor;) {
      seen = this.#cursor;
      await this.#orStall(this.whenAtRest(), left);
    }
    // What the code has left running in the background comes to them when it likes, also when the code has ended.
    if (this.isOver && !this.isFollowed) await this.#orStall(this.whenFollowed());
    await nextTurn(this.#runtime);
    return this.isFollowed ? undefined : (this.next ?? this.find(this.#lastOpenStep));
  }

  async #orStall(...awaited: readonly Promise<unknown>[]): Promise<void> {
    let cancel = (): void => undefined;
    const stalled = new Promise<void>((resolve, reject) => {
      cancel = this.#runtime.startTimer(REPLAY_STALL_MS, resolve);
      this.#stopStanding = () => {
        cancel();
        reject(new Error('The replay was stopped.'));
      };
    });
    try {
      await Promise.race([...awaited, stalled]);
    } finally {
      cancel();
      this.#stopStanding = undefined;
    }
  }

  /** Drops everything: nobody will be answered. */
  stop(): void {
    this.#onlookers.length = 0;
    this.#followers.length = 0;
    this.#stopStanding?.();
    this.#cancelStall?.();
    this.#called.clear();
    this.#liveCalls.length = 0;
    this.#cursor = this.#ordered.length;
  }

  /** The replay is over: with its last result, or, where calls wait for that, once they have been let through. */
  #tellOnlookers(): void {
    for (const tell of this.#onlookers.splice(0)) tell();
    this.#tellFollowers();
  }

  #tellFollowers(): void {
    if (this.#followers.length > 0 && this.isFollowed) for (const tell of this.#followers.splice(0)) tell();
  }

  /** A macrotask lies between two results: by then the code that got the first one has come to rest. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    this.#runtime.nextTurn(() => {
      this.#pumping = false;
      this.#handOut();
    });
  }

  #handOut(): void {
    const next = this.next;
    if (next === undefined) {
      this.#cancelStall?.();
      for (const resolve of this.#liveCalls.splice(0)) resolve();
      this.#tellOnlookers();
      this.#tellFollowers();
      return;
    }
    const called = this.#called.get(next.seq);
    if (called === undefined) {
      if (this.#called.size > 0 || this.#liveCalls.length > 0) {
        this.#cancelStall ??= this.#runtime.startTimer(REPLAY_STALL_MS, () => {
          this.#onStall(next);
        });
      }
      return;
    }
    this.#cancelStall?.();
    this.#cancelStall = undefined;
    if (!called.isReady) return;
    this.#called.delete(next.seq);
    this.#cursor += 1;
    called.resolve();
    if (this.isOver) this.#tellOnlookers();
    this.#tellFollowers();
    if (this.#called.size > 0 || this.#liveCalls.length > 0) this.#pump();
  }
}

/**
 * The same for results as they are made: two that one flush recorded reach the workflow one after the other, in the order
 * of their record versions, with the code at rest in between. A lone result passes at once.
 */
export class Turnstile {
  readonly #runtime: Runtime;
  readonly #waiting: (() => void)[] = [];
  #occupied = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Undefined: go on at once. Not before `ready` has resolved; what comes later waits for that as well. */
  pass(ready?: Promise<unknown>): Promise<void> | undefined {
    if (!this.#occupied && ready === undefined) {
      this.#occupied = true;
      this.#runtime.nextTurn(this.#next);
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        const go = (): void => {
          resolve();
          this.#runtime.nextTurn(this.#next);
        };
        if (ready === undefined) go();
        else void ready.then(go);
      });
      if (this.#occupied) return;
      this.#occupied = true;
      this.#next();
    });
  }

  readonly #next = (): void => {
    const pass = this.#waiting.shift();
    if (pass === undefined) this.#occupied = false;
    else pass();
  };
}
