import type { Logger } from '../api/logger.js';
import type { Engine, ExecutorState } from '../engine/engine.js';
import { HoldfastError } from '../errors/holdfast-error.js';
import type { ClaimedWorkflow, ExecutorStore, WorkflowStore } from '../store/store.js';
import { Repeater } from './repeater.js';

/** Workflows taken in one claim. A recovery of many is spread over claims, and so over executors. */
const CLAIM_BATCH = 100;

export interface ClaimLoopOptions {
  readonly store: ExecutorStore & Pick<WorkflowStore, 'verifyOwnership'>;
  readonly engine: Engine;
  readonly executor: ExecutorState;
  readonly logger: Logger;
  readonly pollMs: number;
  readonly maxConcurrent: number;
  readonly deadLetterError: string;
  /** Milliseconds after which what was claimed may have been given back by the comparison of rows, as nobody ran it. */
  readonly lateMs: number;
}

/**
 * Claims what there is to run: what executors left whose lease has expired, what is due, and what was given back. At launch
 * at once, then at hints and, since hints get lost, at every poll. Polls are jittered, so that a fleet does not come at once.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #repeater: Repeater;
  /** The last claim stopped because all slots were taken: there may be more. */
  #isFull = false;

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    this.#repeater = new Repeater(
      () => this.#claimAll(),
      () => options.pollMs * (0.75 + Math.random() / 2),
    );
  }

  start(): void {
    this.#repeater.start();
    this.#repeater.wake();
  }

  wake(): void {
    this.#repeater.wake();
  }

  /** An execution has ended. What waits for its slot need not wait for the next poll. */
  slotFreed(): void {
    if (this.#isFull) this.#repeater.wake();
  }

  stop(): Promise<void> {
    return this.#repeater.stop();
  }

  /** Claims this one workflow, if it can be claimed. `requeues`: how often it came back without progress. */
  async claimOnly(workflowId: string, requeues: number): Promise<void> {
    await this.#claim(1, [workflowId], requeues);
  }

  async #claimAll(): Promise<void> {
    const { engine, maxConcurrent, logger } = this.#options;
    try {
      for (;;) {
        const limit = Math.min(CLAIM_BATCH, maxConcurrent - engine.runningCount);
        this.#isFull = limit <= 0;
        if (this.#isFull || (await this.#claim(limit, undefined, 0)) < limit) return;
      }
    } catch (error) {
      logger.warn('A claim failed.', { code: error instanceof HoldfastError ? error.code : undefined });
    }
  }

  async #claim(limit: number, only: readonly string[] | undefined, requeues: number): Promise<number> {
    const { store, engine, executor, deadLetterError, lateMs } = this.#options;
    const sentAt = performance.now();
    const claimed = await store.claim({
      executor: executor.identity,
      appVersion: executor.appVersion,
      names: engine.catalog.names,
      limit,
      deadLetterError,
      ...(only === undefined ? {} : { only }),
    });
    const isLate = performance.now() - sentAt >= lateMs;
    for (const workflow of isLate ? await this.#stillOwned(claimed) : claimed) engine.adopt(workflow, requeues);
    return claimed.length;
  }

  async #stillOwned(claimed: readonly ClaimedWorkflow[]): Promise<readonly ClaimedWorkflow[]> {
    const { store } = this.#options;
    const owned = await Promise.all(claimed.map(({ ownership }) => store.verifyOwnership(ownership)));
    return claimed.filter((_, index) => owned[index]);
  }
}
