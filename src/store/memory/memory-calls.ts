import { setMaxListeners } from 'node:events';
import { StoreClosedError } from '../../errors/store-errors.js';
import { CONFLICT_DELAYS_MS } from '../conflict-delays.js';
import type { Denied, Ownership } from '../store.js';
import { newStoreCounters } from '../store-counters.js';
import type { Clock } from './clock.js';
import { LostReplyError, type Link } from './link.js';
import type { OwnershipCheck, Tried } from './ownership-check.js';

/** How long to wait before a call whose reply was lost is sent again, in milliseconds. */
const REPEAT_DELAY_MS = 50;

/** How one process speaks with a memory database: asks again where a reply was lost, and keeps writes in their order. */
export class MemoryCalls {
  readonly counters = newStoreCounters();
  readonly #link: Link;
  readonly #clock: Pick<Clock, 'pause'>;
  readonly #newNonce: () => string;
  /** Ends pauses. Made with the first of them, as most stores never pause. */
  #closing: AbortController | undefined;
  #isClosed = false;
  /** The last write of each execution. */
  readonly #lines = new Map<string, Promise<unknown>>();

  constructor({
    link,
    clock,
    newNonce,
  }: {
    readonly link: Link;
    readonly clock: Pick<Clock, 'pause'>;
    readonly newNonce: () => string;
  }) {
    this.#link = link;
    this.#clock = clock;
    this.#newNonce = newNonce;
  }

  newNonce(): string {
    return this.#newNonce();
  }

  /** Asks until it is answered: only for what may happen twice, or knows by its nonce that it has happened. */
  async ask<Reply>(transaction: () => Reply): Promise<Reply> {
    for (;;) {
      this.#throwIfClosed();
      try {
        const reply = await this.#link.call(transaction);
        this.#throwIfClosed();
        return reply;
      } catch (error) {
        if (!(error instanceof LostReplyError)) throw error;
        this.counters.repeatedFlushes += 1;
        await this.#pause(REPEAT_DELAY_MS);
      }
    }
  }

  /** @throws LostReplyError */
  async once<Reply>(transaction: () => Reply): Promise<Reply> {
    this.#throwIfClosed();
    const reply = await this.#link.call(transaction);
    this.#throwIfClosed();
    return reply;
  }

  /** A write of an execution, after those that it has made before. */
  write<Answer>(ownership: Ownership, attempt: (check: OwnershipCheck) => Tried<Answer>): Promise<Answer | Denied> {
    return this.inLine(ownership, () => this.writeNow(ownership, attempt));
  }

  /** A write of an execution, whatever else it has under way. Follows the version where that moves under the same token. */
  async writeNow<Answer>(
    ownership: Ownership,
    attempt: (check: OwnershipCheck) => Tried<Answer>,
  ): Promise<Answer | Denied> {
    const nonce = this.#newNonce();
    for (let conflicts = 0; ; conflicts++) {
      const { workflowId, token, recordVersion: version } = ownership;
      const tried = await this.ask(() => attempt({ workflowId, token, version, nonce }));
      if (tried.kind === 'answered') {
        ownership.recordVersion = version + tried.raised;
        return tried.answer;
      }
      this.counters.versionConflicts += 1;
      ownership.recordVersion = tried.version;
      const delayMs = CONFLICT_DELAYS_MS[conflicts];
      if (delayMs === undefined) return { kind: 'conflict' };
      await this.#pause(delayMs);
    }
  }

  /** What one execution asks goes in the order of its calls; two executions of one workflow do not wait for each other. */
  inLine<Answer>(
    { workflowId, token }: Pick<Ownership, 'workflowId' | 'token'>,
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    const line = `${token} ${workflowId}`;
    const before = this.#lines.get(line);
    const answered = before === undefined ? call() : before.then(call, call);
    this.#lines.set(line, answered);
    const leave = (): void => {
      if (this.#lines.get(line) === answered) this.#lines.delete(line);
    };
    answered.then(leave, leave);
    return answered;
  }

  /** Passes a hint on to this process, while it is there. */
  hint(deliver: () => void): void {
    this.#link.hint(() => {
      if (!this.#isClosed) deliver();
    });
  }

  /** Waits for writes that are under way, up to `drainMs`; what is not answered by then never is. */
  async close(drainMs: number): Promise<void> {
    if (drainMs > 0 && this.#lines.size > 0) {
      const drained = Promise.allSettled(this.#lines.values());
      await Promise.race([drained, this.#pause(drainMs)]);
    }
    this.#isClosed = true;
    this.#closing?.abort();
  }

  #pause(ms: number): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = new AbortController();
      setMaxListeners(0, this.#closing.signal);
      if (this.#isClosed) this.#closing.abort();
    }
    return this.#clock.pause(ms, this.#closing.signal);
  }

  #throwIfClosed(): void {
    if (!this.#isClosed) return;
    throw new StoreClosedError('The store was closed before this call was answered: its effect is unknown.');
  }
}
