import type { Runtime } from '../runtime/runtime.js';
import type { Wait } from '../store/store.js';

/** A durable call whose promise the workflow's code holds. */
export interface OpenCall {
  readonly reject: (cause: unknown) => void;
  /** The number of a call that receives a message: its code has not got one yet. */
  receives?: number;
  /** The number of a step whose intent is, or may be, on record: until its result is, nobody knows whether it happened. */
  intended?: number;
}

/** How a call is answered. */
interface Answering<Result> {
  readonly resolve: (value: Result) => void;
  readonly reject: (cause: unknown) => void;
  readonly isMute: () => boolean;
}

/** What an open call waits for, and when that ends by itself at the latest, by the monotonic clock. */
interface OpenWait {
  readonly wait: Wait;
  readonly dueAt: number;
}

/** The durable calls of one execution that are under way, and which of them do nothing but wait. */
export class OpenCalls {
  readonly #runtime: Runtime;
  readonly #createdAt: number;
  readonly #open = new Set<OpenCall>();
  /** Most steps wait for nothing. */
  #waits: Set<OpenWait> | undefined;
  /** Since when all of them do nothing but wait, by the monotonic clock. */
  #idleSince: number | undefined;
  /** When something was last recorded or handed out, or they last stopped to do nothing but wait; by the monotonic clock. */
  #progressAt: number;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#createdAt = runtime.now();
    this.#progressAt = this.#createdAt;
  }

  /** How long their execution has been here, in milliseconds. */
  get ageMs(): number {
    return this.#runtime.now() - this.#createdAt;
  }

  get size(): number {
    return this.#open.size;
  }

  /** What is waited for, once for each call. */
  get waits(): readonly Wait[] {
    return [...(this.#waits ?? [])].map(({ wait }) => wait);
  }

  /** Numbers of the calls whose message the code has not got, though it may be on record. */
  get unreceived(): readonly number[] {
    return [...this.#open].flatMap(({ receives }) => (receives === undefined ? [] : [receives]));
  }

  /** Whether a step would be left that may have happened. */
  get leaveUnknown(): boolean {
    for (const { intended } of this.#open) if (intended !== undefined) return true;
    return false;
  }

  add(call: OpenCall): void {
    this.#open.add(call);
    this.#noteBusy();
  }

  remove(call: OpenCall): void {
    this.#open.delete(call);
    if (this.#waits !== undefined && this.#waits.size > 0) this.#noteIdle();
  }

  /** Begins one, and answers it with what comes of it, unless nobody is to be answered any more. */
  call<Result>(work: (open: OpenCall) => Promise<Result>, { resolve, reject, isMute }: Answering<Result>): void {
    const open: OpenCall = { reject };
    this.add(open);
    work(open).then(
      (value) => {
        this.remove(open);
        if (!isMute()) resolve(value);
      },
      (error: unknown) => {
        this.remove(open);
        // Whatever the step threw, also if that is no Error.
        if (!isMute()) reject(error);
      },
    );
  }

  /** Rejects all of them. */
  rejectAll(reason: Error): void {
    for (const { reject } of this.#open) reject(reason);
    this.clear();
  }

  /** Forgets all of them; their promises are never answered. */
  clear(): void {
    this.#open.clear();
    this.#waits?.clear();
    this.#idleSince = undefined;
  }

  /** Says what a call waits for, until `until` settles. `dueInMs`: when that is at the latest. */
  async waiting<Result>(wait: Wait, until: Promise<Result>, dueInMs: number): Promise<Result> {
    const open: OpenWait = { wait, dueAt: this.#runtime.now() + dueInMs };
    const waits = (this.#waits ??= new Set());
    waits.add(open);
    this.#noteIdle();
    try {
      return await until;
    } finally {
      waits.delete(open);
      this.#noteIdle();
    }
  }

  /** Whether they have done nothing but wait for `sinceMs`, and no moment that is waited for comes within `untilMs`. */
  isIdle(sinceMs: number, untilMs: number): boolean {
    if (this.#idleSince === undefined) return false;
    const now = this.#runtime.now();
    if (now - this.#idleSince < sinceMs) return false;
    for (const { dueAt } of this.#waits ?? []) if (dueAt - now < untilMs) return false;
    return true;
  }

  /** How long nothing has been recorded or handed out, without all of them waiting, in milliseconds. */
  get stalledMs(): number {
    return this.#idleSince === undefined ? this.#runtime.now() - this.#progressAt : 0;
  }

  noteProgress(): void {
    this.#progressAt = this.#runtime.now();
  }

  /** Counts from now on again how long they have waited. */
  restartIdle(): void {
    if (this.#idleSince !== undefined) this.#idleSince = this.#runtime.now();
  }

  #noteIdle(): void {
    const waits = this.#waits?.size ?? 0;
    const isIdle = waits > 0 && waits === this.#open.size;
    if (isIdle) this.#idleSince ??= this.#runtime.now();
    else this.#noteBusy();
  }

  #noteBusy(): void {
    if (this.#idleSince === undefined) return;
    this.#idleSince = undefined;
    this.noteProgress();
  }
}
