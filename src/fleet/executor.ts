import { hostname } from 'node:os';
import type { Logger } from '../api/logger.js';
import type { Engine, ExecutorState } from '../engine/engine.js';
import { HoldfastError } from '../errors/holdfast-error.js';
import type { ExecutorIdentity, ExecutorStore, Ownership } from '../store/store.js';
import { ClaimLoop } from './claim-loop.js';
import { Reconciler } from './reconciler.js';
import { Repeater } from './repeater.js';
import { Requeues } from './requeues.js';
import type { WorkflowStore } from '../store/store.js';

/** Heartbeats in one lease: two may fail before it lapses. */
const HEARTBEATS_PER_LEASE = 3;

export interface ExecutorOptions {
  readonly store: ExecutorStore & WorkflowStore;
  readonly logger: Logger;
  readonly executorId: string;
  readonly appVersion: string;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly maxConcurrent: number;
  /** The encoded errors of workflows that are given up. */
  readonly deadLetterError: string;
  readonly stuckError: string;
  /** A newer process has registered under the same ID. */
  readonly onSuperseded: () => void;
}

/** What an operator asks first. */
export interface ExecutorHealth {
  readonly state: 'running' | 'fenced' | 'superseded' | 'stopped';
  readonly executorId: string;
  readonly incarnation: number;
  /** Executions under way. */
  readonly running: number;
  /** Milliseconds since the last acknowledged heartbeat was sent. */
  readonly heartbeatAgeMs: number;
}

/**
 * This process's membership in the fleet: its lease, and what it claims. `fenced` means that the lease may have lapsed: each
 * execution then asks the database before it starts another step body.
 */
export class Executor implements ExecutorState {
  readonly #options: ExecutorOptions;
  readonly #heartbeats: Repeater;
  #identity: ExecutorIdentity;
  #state: 'running' | 'superseded' | 'stopped' = 'stopped';
  #engine: Engine | undefined;
  #claims: ClaimLoop | undefined;
  #reconciler: Reconciler | undefined;
  #requeues: Requeues | undefined;
  /** Monotonic time at which the last acknowledged heartbeat was sent. */
  #leasedAt = -Infinity;
  #clock = { ms: 0, at: 0 };

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#identity = { executorId: options.executorId, incarnation: 0 };
    this.#heartbeats = new Repeater(
      () => this.#beat(),
      () => options.leaseMs / HEARTBEATS_PER_LEASE,
    );
  }

  get identity(): ExecutorIdentity {
    return this.#identity;
  }

  get appVersion(): string {
    return this.#options.appVersion;
  }

  get leaseIsFresh(): boolean {
    return performance.now() - this.#leasedAt < this.#options.leaseMs;
  }

  get health(): ExecutorHealth {
    const lapsed = this.#state === 'running' && !this.leaseIsFresh;
    return {
      state: lapsed ? 'fenced' : this.#state,
      ...this.#identity,
      running: this.#engine?.runningCount ?? 0,
      heartbeatAgeMs: performance.now() - this.#leasedAt,
    };
  }

  clockMs(): number {
    return this.#clock.ms + (performance.now() - this.#clock.at);
  }

  /** Registers, so that there is a lease before anything is owned. */
  async register(): Promise<void> {
    const { store, executorId, appVersion, leaseMs } = this.#options;
    const sentAt = performance.now();
    const incarnation = await store.registerExecutor({
      executorId,
      appVersion,
      leaseMs,
      host: hostname(),
      processId: process.pid,
    });
    this.#identity = { executorId, incarnation };
    this.#leasedAt = sentAt;
    await this.#beat();
    this.#state = 'running';
  }

  /** Begins to renew the lease and to claim work for the engine. */
  run(engine: Engine): void {
    const { store, logger, pollMs, maxConcurrent, deadLetterError, stuckError } = this.#options;
    this.#engine = engine;
    this.#reconciler = new Reconciler(store, engine, logger);
    this.#claims = new ClaimLoop({ store, engine, executor: this, logger, pollMs, maxConcurrent, deadLetterError });
    this.#requeues = new Requeues({ store, claims: this.#claims, logger, stuckError });
    this.#heartbeats.start();
    this.#claims.start();
  }

  requeue(ownership: Ownership, delayMs: number, requeues: number): void {
    void this.#requeues?.requeue(ownership, delayMs, requeues);
  }

  /** There may be something to claim. */
  wake(): void {
    this.#claims?.wake();
  }

  /** Claims nothing any more; the lease goes on, for what still runs. */
  async stopClaiming(): Promise<void> {
    this.#requeues?.stop();
    await this.#claims?.stop();
  }

  /** Gives the lease up: whatever this executor still owns can be claimed at once. */
  async deregister(): Promise<void> {
    await this.#heartbeats.stop();
    if (this.#state !== 'superseded') {
      this.#state = 'stopped';
      try {
        await this.#options.store.deregisterExecutor(this.#identity);
      } catch (error) {
        // Then the lease runs out by itself.
        this.#options.logger.warn('The executor could not be deregistered.', { code: codeOf(error) });
      }
    }
  }

  async #beat(): Promise<void> {
    const { store, leaseMs, logger } = this.#options;
    const sentAt = performance.now();
    try {
      const { state, clockMs } = await store.heartbeat(this.#identity, leaseMs);
      switch (state) {
        case 'renewed':
          this.#leasedAt = sentAt;
          this.#clock = { ms: clockMs, at: (sentAt + performance.now()) / 2 };
          await this.#reconciler?.reconcile(this.#identity);
          break;
        case 'superseded':
          this.#supersede();
          break;
        case 'unregistered':
          await this.#registerAgain();
          break;
      }
    } catch (error) {
      logger.warn('A heartbeat failed.', { code: codeOf(error), executorId: this.#identity.executorId });
    }
  }

  async #registerAgain(): Promise<void> {
    this.#options.logger.warn('The executor row is gone; registering again.', { ...this.#identity });
    await this.register();
  }

  #supersede(): void {
    if (this.#state === 'superseded') return;
    this.#state = 'superseded';
    this.#leasedAt = -Infinity;
    this.#options.logger.error('A newer process has registered under this executor ID; this one stops.', {
      ...this.#identity,
    });
    this.#options.onSuperseded();
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof HoldfastError ? error.code : undefined;
}
