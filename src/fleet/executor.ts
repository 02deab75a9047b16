import { hostname } from 'node:os';
import type { Logger } from '../api/logger.js';
import type { Engine, ExecutorState } from '../engine/engine.js';
import { sleep, within } from '../engine/timer.js';
import { ConnectionLostError, ConnectionUnavailableError } from '../errors/database-errors.js';
import { codeOf } from '../errors/error-code.js';
import { HoldfastClosedError } from '../errors/usage-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import { HEARTBEATS_PER_LEASE } from '../store/store.js';
import type { ExecutorIdentity, ExecutorStore, Ownership } from '../store/store.js';
import { ClaimLoop } from './claim-loop.js';
import { newFleetCounters } from './fleet-counters.js';
import { leastSuspicionMs, Reconciler } from './reconciler.js';
import { Repeater } from './repeater.js';
import { Requeues, type RequeuePolicy } from './requeues.js';
import { Suspender } from './suspender.js';
import { Watchdog } from './watchdog.js';
import { elapsedMs, thisMoment, type Moment } from './moment.js';
import type { WorkflowStore } from '../store/store.js';

/** How often a launch asks for the database's clock before it gives up, though the database can be reached. */
const FIRST_HEARTBEAT_ATTEMPTS = 5;
/** From one try to the next, in milliseconds. */
const FIRST_HEARTBEAT_PAUSE_MS = 100;
const LONGEST_FIRST_PAUSE_MS = 1_000;
/** How long an executor that leaves waits for a heartbeat that is under way, in milliseconds. */
const LAST_HEARTBEAT_MS = 1_000;

export interface ExecutorOptions {
  readonly runtime: Runtime;
  readonly store: ExecutorStore & WorkflowStore;
  readonly logger: Logger;
  readonly executorId: string;
  readonly appVersion: string;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly maxConcurrent: number;
  /** How long an execution does nothing but wait before it is unloaded. */
  readonly suspendAfterMs: number;
  /** The encoded errors of workflows that are given up. */
  readonly deadLetterError: string;
  readonly stuckError: string;
  readonly stalledError: string;
  readonly requeues?: RequeuePolicy;
  /** A newer process has registered under the same ID. */
  readonly onSuperseded: () => void;
  /** Workflows have been claimed that have run before. */
  readonly onReturned: () => void;
}

/** What an operator asks first. */
export interface ExecutorHealth {
  readonly state: 'running' | 'fenced' | 'superseded' | 'stopped';
  readonly executorId: string;
  readonly incarnation: number;
  /** Executions under way. */
  readonly running: number;
  /** How often writes met a change by somebody who did not take ownership. Expected under concurrency; counted here only. */
  readonly versionConflicts: number;
  /** Milliseconds since the last acknowledged heartbeat was sent. */
  readonly heartbeatAgeMs: number;
}

/**
 * This process's membership in the fleet: its lease, and what it claims. `fenced` means that the lease may have lapsed, now
 * or in a gap of which it is not known yet what was lost in it: each execution then asks the database before it starts
 * another step body.
 *
 * Heartbeats go out at a fixed rate and wait for nothing else, least of all for a row that somebody keeps locked.
 */
export class Executor implements ExecutorState {
  readonly counters = newFleetCounters();
  readonly #options: ExecutorOptions;
  readonly #runtime: Runtime;
  readonly #heartbeats: Repeater;
  readonly #intervalMs: number;
  #identity: ExecutorIdentity;
  #state: 'running' | 'superseded' | 'stopped' = 'stopped';
  #engine: Engine | undefined;
  #claims: ClaimLoop | undefined;
  #reconciler: Reconciler | undefined;
  #requeues: Requeues | undefined;
  #watchdog: Watchdog | undefined;
  #suspender: Suspender | undefined;
  /** When the last acknowledged heartbeat was sent. */
  #leasedAt: Moment | undefined;
  /** When the lease was renewed after a gap. Until the running set has been compared since, each execution may be lost. */
  #doubtfulSince: number | undefined;
  /** When the lease that was renewed late had run out. */
  #fencedFrom = 0;
  #beatAt = -Infinity;
  #clock = { ms: 0, at: 0 };

  constructor(options: ExecutorOptions) {
    const { runtime } = options;
    this.#options = options;
    this.#runtime = runtime;
    this.#identity = { executorId: options.executorId, incarnation: 0 };
    this.#intervalMs = options.leaseMs / HEARTBEATS_PER_LEASE;
    this.#heartbeats = new Repeater(
      runtime,
      () => this.#beat(),
      // From one beat's beginning to the next one's: one that hangs must not take two intervals out of the lease.
      () => Math.max(0, this.#intervalMs - (this.#runtime.now() - this.#beatAt)),
    );
  }

  get identity(): ExecutorIdentity {
    return this.#identity;
  }

  get appVersion(): string {
    return this.#options.appVersion;
  }

  get lateMs(): number {
    return leastSuspicionMs(this.#intervalMs);
  }

  isGivingBack(token: string): boolean {
    return this.#reconciler?.isGivingBack(token) ?? false;
  }

  get leaseIsFresh(): boolean {
    return this.#doubtfulSince === undefined && this.#leaseAgeMs < this.#options.leaseMs;
  }

  get health(): ExecutorHealth {
    const fenced = this.#state === 'running' && !this.leaseIsFresh;
    return {
      state: fenced ? 'fenced' : this.#state,
      ...this.#identity,
      running: this.#engine?.runningCount ?? 0,
      versionConflicts: this.#options.store.counters.versionConflicts,
      heartbeatAgeMs: this.#leaseAgeMs,
    };
  }

  /** Time in which the lease may have lapsed, until now, in milliseconds. */
  get fencedMs(): number {
    const { fencedMs } = this.counters;
    if (this.#doubtfulSince !== undefined) return fencedMs + this.#runtime.now() - this.#fencedFrom;
    return this.#state === 'running' ? fencedMs + Math.max(0, this.#leaseAgeMs - this.#options.leaseMs) : fencedMs;
  }

  clockMs(): number {
    return this.#clock.ms + (this.#runtime.now() - this.#clock.at);
  }

  /**
   * Registers, so that there is a lease before anything is owned, and learns the database's clock.
   *
   * @param signal ends the waiting for a database that cannot be reached
   * @throws HoldfastClosedError when a newer process has registered under this ID meanwhile
   */
  async register(signal?: AbortSignal): Promise<void> {
    await this.#register();
    this.#state = 'running';
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#renew();
        break;
      } catch (error) {
        const isHopeless = attempt >= FIRST_HEARTBEAT_ATTEMPTS && !isUnreachable(error);
        if (isHopeless || signal?.aborted === true) throw error;
        await sleep(this.#runtime, Math.min(FIRST_HEARTBEAT_PAUSE_MS * attempt, LONGEST_FIRST_PAUSE_MS));
      }
    }
    if (this.health.state !== 'superseded') return;
    throw new HoldfastClosedError(
      `A newer process has registered under the executor ID "${this.#identity.executorId}" while this one was being launched: it goes on in its place. Give each process an executorId of its own, or none.`,
    );
  }

  /** Begins to renew the lease and to claim work for the engine. */
  run(engine: Engine): void {
    const { runtime, store, logger, pollMs, maxConcurrent, suspendAfterMs, requeues, onReturned } = this.#options;
    const { deadLetterError, stuckError, stalledError } = this.#options;
    this.#engine = engine;
    this.#reconciler = new Reconciler({
      runtime,
      store,
      engine,
      logger,
      counters: this.counters,
      intervalMs: this.#intervalMs,
      identity: () => this.#identity,
      onCompared: (since) => {
        if (this.#doubtfulSince === undefined || since < this.#doubtfulSince) return;
        this.#doubtfulSince = undefined;
        this.counters.fencedMs += this.#runtime.now() - this.#fencedFrom;
      },
    });
    const { counters } = this;
    const claims = { runtime, store, engine, executor: this, logger, counters, pollMs, maxConcurrent, deadLetterError };
    this.#claims = new ClaimLoop({ ...claims, onReturned });
    this.#requeues = new Requeues({
      runtime,
      store,
      claims: this.#claims,
      logger,
      counters,
      stuckError,
      policy: requeues,
    });
    this.#suspender = new Suspender({ runtime, engine, suspendAfterMs, maxConcurrent });
    this.#watchdog = new Watchdog({ runtime, store, engine, logger, counters, stalledError });
    this.#watchdog.start();
    this.#heartbeats.start();
    this.#reconciler.start();
    this.#suspender.start();
    this.#claims.start();
  }

  requeue(ownership: Ownership, requeues: number): void {
    void this.#requeues?.requeue(ownership, requeues);
  }

  slotFreed(): void {
    this.#claims?.slotFreed();
  }

  /** There may be something to claim. */
  wake(): void {
    this.#claims?.wake();
  }

  /** Claims nothing any more; the lease goes on, for what still runs, up to `drainMs`. */
  async stopClaiming(drainMs: number): Promise<void> {
    this.#requeues?.stop();
    this.#suspender?.drain(drainMs);
    await this.#claims?.stop();
  }

  /** Gives the lease up: whatever this executor still owns can be claimed at once. */
  async deregister(): Promise<void> {
    this.#reconciler?.stop();
    void this.#watchdog?.stop();
    void this.#suspender?.stop();
    // One that is under way would renew the lease again. One that hangs must not keep it from being given up.
    await within(this.#runtime, this.#heartbeats.stop(), LAST_HEARTBEAT_MS);
    if (this.#state === 'running') this.#state = 'stopped';
    if (this.#state === 'superseded') return;
    try {
      await this.#options.store.deregisterExecutor(this.#identity);
    } catch (error) {
      // Then the lease runs out by itself.
      this.#options.logger.warn('The executor could not be deregistered.', { code: codeOf(error) });
    }
  }

  get #leaseAgeMs(): number {
    return this.#leasedAt === undefined ? Infinity : elapsedMs(this.#runtime, this.#leasedAt);
  }

  async #beat(): Promise<void> {
    try {
      await this.#renew();
    } catch (error) {
      this.counters.heartbeatsFailed += 1;
      this.#options.logger.warn('A heartbeat failed.', {
        code: codeOf(error),
        executorId: this.#identity.executorId,
      });
    }
  }

  async #renew(): Promise<void> {
    const { store, leaseMs, logger } = this.#options;
    const sent = thisMoment(this.#runtime);
    this.#beatAt = sent.monotonicMs;
    const { state, clockMs } = await store.heartbeat(this.#identity, leaseMs);
    switch (state) {
      case 'renewed':
        // The reply was on its way for a while: the clock is read as if it had not been, so as never to be ahead.
        this.#clock = { ms: clockMs, at: this.#runtime.now() };
        if (this.#leaseAgeMs >= leaseMs) this.#doubt(this.#leaseAgeMs - leaseMs);
        this.#leasedAt = sent;
        break;
      case 'superseded':
        this.#supersede();
        break;
      case 'unregistered':
        logger.warn('The executor row is gone; registering again.', { ...this.#identity });
        await this.#register();
        this.#doubt(0);
        break;
    }
  }

  async #register(): Promise<void> {
    const { store, executorId, appVersion, leaseMs } = this.#options;
    const sent = thisMoment(this.#runtime);
    const incarnation = await store.registerExecutor({
      executorId,
      appVersion,
      leaseMs,
      host: hostname(),
      processId: process.pid,
    });
    this.#identity = { executorId, incarnation };
    this.#leasedAt = sent;
  }

  /** There was a gap in which others may have taken over what runs here. */
  #doubt(lapsedMs: number): void {
    const now = this.#runtime.now();
    if (this.#doubtfulSince === undefined) this.#fencedFrom = now - lapsedMs;
    this.#doubtfulSince = now;
    this.#reconciler?.wake();
  }

  #supersede(): void {
    if (this.#state !== 'running') return;
    this.#state = 'superseded';
    this.#leasedAt = undefined;
    this.#options.logger.error('A newer process has registered under this executor ID; this one stops.', {
      ...this.#identity,
    });
    // Before it runs there is nothing to be closed: the launch fails.
    if (this.#engine !== undefined) this.#options.onSuperseded();
  }
}

/** Whether it is the way to the database that failed, and not what was asked of it. */
function isUnreachable(error: unknown): boolean {
  return error instanceof ConnectionLostError || error instanceof ConnectionUnavailableError;
}
