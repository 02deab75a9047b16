import type { Duration } from './duration.js';
import type { CallersTransaction } from './queue.js';

/**
 * A named lease: authority that one holder has at a time, as far as clocks can tell. A holder that is paused for longer than it
 * lasts does not know that it has lost it, so whatever it protects has to compare tokens, see `acceptFence`. (Fencing tokens
 * are described in Martin Kleppmann, "How to do distributed locking".)
 */
export interface Lease {
  readonly name: string;
  /** Grows with every holder of this name. A safe integer, beginning at 1. */
  readonly token: number;
  /** Fires when the lease is lost: somebody else has it, or it could not be renewed in time. */
  readonly signal: AbortSignal;
  /** Whether it lasts still, by the clocks of this process. */
  readonly isHeld: boolean;
}

export interface LeaseOptions {
  /** How long the lease lasts without being renewed, which happens every third of it. At least 100 ms. Default 30 s. */
  readonly ttl?: Duration;
  /** How long to wait for a lease that somebody else holds. Default 0: not at all. */
  readonly wait?: Duration;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

export interface LeaderOptions {
  /** As for {@link LeaseOptions}. */
  readonly ttl?: Duration;
  /** Ends the candidacy, and the leadership: the lease's signal fires. */
  readonly signal?: AbortSignal;
}

export interface FenceOptions {
  /** The open transaction that writes the resource: a client of `pg`, or what `sql.begin` of `postgres` passes. */
  readonly transaction: CallersTransaction;
  /** What is protected, 1 to 512 bytes. */
  readonly resource: string;
  /** `lease.token`, or `workflow().epoch`: not negative. */
  readonly token: number;
}

/** Named leases and fences: `holdfast.leases`, and the same of a client. */
export interface LeaseOperations {
  /**
   * Runs `work` while this process holds the lease, and returns what it returns. The lease is renewed meanwhile, and given up
   * when `work` settles. Inside steps and outside of workflows.
   *
   * @throws LeaseHeldError when somebody else has it for longer than `wait`; `work` has not run.
   * @throws LeaseLostError when it was lost before `work` returned. What `work` throws itself is passed on.
   * @throws InvalidArgumentError, OutsideWorkflowError, HoldfastClosedError
   */
  withLease<Result>(name: string, options: LeaseOptions, work: (lease: Lease) => Promise<Result>): Promise<Result>;
  /**
   * Waits until this process holds the lease, runs `work`, and does so again each time the lease was lost, until `work` returns
   * while it is held, `signal` fires, or this Holdfast closes. `work` is never run twice at once by one call: a loss waits for
   * it to settle, so it has to stop when `lease.signal` fires. What it throws while the lease is held is passed on.
   */
  whileLeader(name: string, options: LeaderOptions, work: (lease: Lease) => Promise<void>): Promise<void>;
  /**
   * For the resource that a token protects: accepts the token in the transaction that writes the resource, if no higher one
   * was accepted before. From SQL: `accept_fence(resource, token)`.
   *
   * @throws FenceRefusedError; PostgreSQL has aborted the transaction then.
   * @throws InvalidArgumentError
   */
  acceptFence(options: FenceOptions): Promise<void>;
}
