import type { Lease } from '../api/lease.js';
import type { Logger } from '../api/logger.js';
import { codeOf } from '../errors/error-code.js';
import { LeaseLostError } from '../errors/lease-errors.js';
import { elapsedMs, thisMoment, type Moment } from '../fleet/moment.js';
import type { Runtime } from '../runtime/runtime.js';
import { HEARTBEATS_PER_LEASE } from '../store/store.js';
import type { LeaseStore } from '../store/lease-store.js';

/** How long a holder that could not renew its lease waits before it tries again, as a part of the lease. */
const RETRIES_PER_RENEWAL = 4;

export interface HeldLeaseOptions {
  readonly runtime: Runtime;
  readonly store: LeaseStore;
  readonly logger: Logger;
  readonly name: string;
  readonly token: number;
  readonly holder: string;
  readonly ttlMs: number;
  /** When the acquisition that was answered was sent. */
  readonly leasedAt: Moment;
}

/**
 * A lease that this process holds, and renews. It counts from when the last renewal that was answered was sent, by the clocks
 * of this process: the database's clock started later, so this process stops believing in the lease before anybody can take it.
 */
export class HeldLease implements Lease {
  readonly name: string;
  readonly token: number;
  readonly #options: HeldLeaseOptions;
  readonly #controller = new AbortController();
  #leasedAt: Moment;
  #cancelRenewal: () => void = () => undefined;
  #cancelExpiry: () => void = () => undefined;
  #isOver = false;

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
    this.name = options.name;
    this.token = options.token;
    this.#leasedAt = options.leasedAt;
    this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isHeld(): boolean {
    return (
      !this.#isOver && !this.signal.aborted && elapsedMs(this.#options.runtime, this.#leasedAt) < this.#options.ttlMs
    );
  }

  /** The holder is done, or is told to be: the signal fires if `reason` is given. Somebody else can have it at once. */
  async end(reason?: Error): Promise<void> {
    if (this.#isOver) return;
    const isLost = this.signal.aborted;
    this.#stop();
    if (reason !== undefined) this.#controller.abort(reason);
    if (isLost) return;
    try {
      await this.#options.store.renew(this.name, this.#options.holder, 0);
    } catch (error) {
      // Then it runs out by itself.
      this.#warn('A lease could not be given up.', error);
    }
  }

  #stop(): void {
    this.#isOver = true;
    this.#cancelRenewal();
    this.#cancelExpiry();
  }

  #arm(): void {
    const { runtime, ttlMs } = this.#options;
    const ageMs = elapsedMs(runtime, this.#leasedAt);
    this.#cancelExpiry();
    this.#cancelExpiry = runtime.startTimer(ttlMs - ageMs, () => {
      this.#lose('it could not be renewed in time');
    });
    this.#renewIn(ttlMs / HEARTBEATS_PER_LEASE - ageMs);
  }

  #renewIn(ms: number): void {
    this.#cancelRenewal();
    this.#cancelRenewal = this.#options.runtime.startTimer(ms, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { runtime, store, holder, ttlMs } = this.#options;
    const sent = thisMoment(runtime);
    try {
      const isRenewed = await store.renew(this.name, holder, ttlMs);
      if (this.#isOver || this.signal.aborted) return;
      if (!isRenewed) {
        this.#lose('somebody else holds it');
        return;
      }
      // A pause may have outlasted the lease without anybody taking it. Who held it then was nobody.
      if (!this.isHeld) {
        this.#lose('it ran out while this process stood still');
        return;
      }
      this.#leasedAt = sent;
      this.#arm();
    } catch (error) {
      if (this.#isOver || this.signal.aborted) return;
      this.#warn('A lease could not be renewed; it is tried again.', error);
      this.#renewIn(ttlMs / HEARTBEATS_PER_LEASE / RETRIES_PER_RENEWAL);
    }
  }

  #lose(how: string): void {
    this.#cancelRenewal();
    this.#cancelExpiry();
    this.#controller.abort(new LeaseLostError(`The lease "${this.name}" is lost: ${how}. Stop what it protects.`));
  }

  #warn(message: string, error: unknown): void {
    const code = codeOf(error);
    this.#options.logger.warn(message, { lease: this.name, code });
  }
}
