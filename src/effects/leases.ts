import type { FenceOptions, LeaderOptions, Lease, LeaseOperations, LeaseOptions } from '../api/lease.js';
import type { Logger } from '../api/logger.js';
import { abortReason, onAbort } from '../engine/abort-wait.js';
import { checkText } from '../engine/check-text.js';
import { parseDuration } from '../engine/duration.js';
import { checkKnownOptions } from '../engine/known-options.js';
import { durableExecution } from '../engine/scope.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { HoldfastError } from '../errors/holdfast-error.js';
import { LeaseHeldError, LeaseLostError } from '../errors/lease-errors.js';
import { HoldfastClosedError, OutsideWorkflowError } from '../errors/usage-errors.js';
import { elapsedMs, thisMoment } from '../fleet/moment.js';
import type { Runtime } from '../runtime/runtime.js';
import type { LeaseStore } from '../store/lease-store.js';
import { acceptFence } from './accept-fence.js';
import { HeldLease } from './held-lease.js';

const DEFAULT_TTL_MS = 30_000;
const LEAST_TTL_MS = 100;
const LONGEST_NAME_BYTES = 255;
/** How often to ask for a lease that somebody else holds: a part of its length, but not more seldom than this. Milliseconds. */
const LONGEST_ASK_MS = 500;
const ASKS_PER_LEASE = 10;
const LEASE_OPTIONS: ReadonlySet<string> = new Set(['ttl', 'wait', 'signal']);
const LEADER_OPTIONS: ReadonlySet<string> = new Set(['ttl', 'signal']);

export interface LeasesOptions {
  readonly store: LeaseStore;
  readonly runtime: Runtime;
  /** Validated. */
  readonly schema: string;
  readonly logger: Logger;
  /** Who asks, for people. */
  readonly heldBy: () => string;
}

/** Named leases of this process: taken, renewed, lost, and given up. */
export class Leases implements LeaseOperations {
  readonly #options: LeasesOptions;
  readonly #held = new Set<HeldLease>();
  readonly #closing = new AbortController();

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  async withLease<Result>(
    name: string,
    options: LeaseOptions,
    work: (lease: Lease) => Promise<Result>,
  ): Promise<Result> {
    checkKnownOptions(options, LEASE_OPTIONS, 'withLease');
    checkWork(work, 'withLease');
    const ttlMs = checkLease(name, options.ttl, 'withLease');
    const waitMs = parseDuration(options.wait ?? 0, 'wait');
    const lease = await this.#acquire(name, ttlMs, waitMs, options.signal);
    try {
      const result = await work(lease);
      if (lease.signal.aborted) throw lostMeanwhile(lease);
      return result;
    } finally {
      await this.#letGo(lease);
    }
  }

  async whileLeader(name: string, options: LeaderOptions, work: (lease: Lease) => Promise<void>): Promise<void> {
    checkKnownOptions(options, LEADER_OPTIONS, 'whileLeader');
    checkWork(work, 'whileLeader');
    const ttlMs = checkLease(name, options.ttl, 'whileLeader');
    const ends = AbortSignal.any([this.#closing.signal, ...(options.signal === undefined ? [] : [options.signal])]);
    while (!ends.aborted) {
      let lease: HeldLease;
      try {
        lease = await this.#acquire(name, ttlMs, Infinity, ends);
      } catch (error) {
        if (isAborted(ends)) return;
        throw error;
      }
      const stop = onAbort(ends)((reason) => void lease.end(reason));
      try {
        await work(lease);
        // Done, and not because the leadership was lost: nobody asked for another term.
        if (!lease.signal.aborted) return;
      } catch (error) {
        if (!lease.signal.aborted) throw error;
      } finally {
        stop();
        await this.#letGo(lease);
      }
    }
  }

  acceptFence(options: FenceOptions): Promise<void> {
    return acceptFence(this.#options.schema, options);
  }

  /** Every lease is given up, and its signal fires; whoever waits for one is told. */
  async close(): Promise<void> {
    this.#closing.abort(new HoldfastClosedError('This Holdfast is closed: it holds no leases any more.'));
    await Promise.all([...this.#held].map((lease) => lease.end(this.#closing.signal.reason as Error)));
  }

  async #acquire(name: string, ttlMs: number, waitMs: number, signal: AbortSignal | undefined): Promise<HeldLease> {
    const { runtime, store, logger, heldBy } = this.#options;
    const ends = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])]);
    const holder = runtime.randomUuid();
    const since = runtime.now();
    for (;;) {
      if (ends.aborted) throw abortReason(ends);
      const leasedAt = thisMoment(runtime);
      let refusal: Error;
      try {
        const answer = await store.acquire({ name, holder, heldBy: heldBy(), ttlMs });
        if (answer.kind === 'acquired') {
          // An answer that took longer than the lease says nothing about now.
          if (elapsedMs(runtime, leasedAt) >= ttlMs) continue;
          const lease = new HeldLease({ runtime, store, logger, name, token: answer.token, holder, ttlMs, leasedAt });
          this.#held.add(lease);
          if (isAborted(ends)) {
            await this.#letGo(lease);
            throw abortReason(ends);
          }
          return lease;
        }
        refusal = new LeaseHeldError(
          `The lease "${name}" is held by ${answer.heldBy}, for ${String(Math.ceil(answer.remainingMs))} ms at least. ` +
            'Wait longer (option wait), or try again later.',
        );
      } catch (error) {
        if (isAborted(ends) || !(error instanceof HoldfastError)) throw error;
        refusal = error;
      }
      const leftMs = waitMs - (runtime.now() - since);
      if (leftMs <= 0) throw refusal;
      const askMs = Math.min(LONGEST_ASK_MS, ttlMs / ASKS_PER_LEASE) * (0.75 + runtime.random() / 2);
      await pauseUnless(runtime, ends, Math.min(leftMs, askMs));
    }
  }

  async #letGo(lease: HeldLease): Promise<void> {
    await lease.end();
    this.#held.delete(lease);
  }
}

/** @throws InvalidArgumentError, OutsideWorkflowError */
function checkLease(name: string, ttl: LeaseOptions['ttl'], what: string): number {
  checkText(name, LONGEST_NAME_BYTES, 'The name of a lease');
  const ttlMs = parseDuration(ttl ?? DEFAULT_TTL_MS, 'ttl');
  if (ttlMs < LEAST_TTL_MS) {
    throw new InvalidArgumentError(`ttl must be at least ${String(LEAST_TTL_MS)} ms: renewals need time to arrive.`);
  }
  if (durableExecution() !== undefined) {
    throw new OutsideWorkflowError(
      `${what} was called in a workflow, where whether it succeeds would be different at every replay. Call it inside a step.`,
    );
  }
  return ttlMs;
}

function lostMeanwhile(lease: HeldLease): Error {
  const reason: unknown = lease.signal.reason;
  return reason instanceof LeaseLostError || reason instanceof HoldfastClosedError
    ? reason
    : new LeaseLostError(`The lease "${lease.name}" is lost.`, { cause: reason });
}

/** By a call, since a signal that fires during a wait is not what the compiler expects. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function pauseUnless(runtime: Runtime, signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = runtime.startTimer(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal)(() => {
      cancel();
      resolve();
    });
  });
}

/** Before anything is leased for it. @throws InvalidArgumentError */
function checkWork(work: unknown, what: string): void {
  if (typeof work !== 'function') {
    throw new InvalidArgumentError(`${what} takes the function to run as its third argument, after the options.`);
  }
}
