import type { Logger } from '../api/logger.js';
import type { Engine, ExecutorState } from '../engine/engine.js';
import { allHere } from '../engine/soon.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ClaimAnswer, ClaimedWorkflow, ClaimRequest, ExecutorStore } from '../store/store.js';
import type { FleetCounters } from './fleet-counters.js';
import { Repeater } from './repeater.js';

/** Workflows taken in one claim. A recovery of many is spread over claims, and so over executors. */
const CLAIM_BATCH = 100;
/**
 * Where more wait than that, claims become twice as large each time, up to this many: a claim has a price of its own, of
 * which a workflow then bears less. Server time of a drain: 122 µs a workflow by hundreds, 109 by 300 and by 500. What is
 * claimed together also goes on together, in larger flushes.
 */
const LARGEST_CLAIM = 800;
/**
 * Executions of a full executor end one by one, and a claim for each would cost as much as one for a hundred. So their slots are
 * filled together: when a fifth of all is free, or so many, or this many milliseconds after the first.
 */
const FREED_PART = 5;
const ENOUGH_FREED = 250;
const FREED_WAIT_MS = 5;
/** For so long after wake-ups were looked at, a claim for slots that got free does without, in milliseconds; a hint's never does. */
const WAKEUPS_SEEN_MS = 100;
/** Executors that are told to ask again at the same time do not. */
const AGAIN_JITTER_MS = 10;
/** First wait of a claim that is to be repeated soon, in milliseconds; doubles with each that was in vain. */
const SOON_MS = 5;

export interface ClaimLoopOptions {
  readonly runtime: Runtime;
  readonly store: ExecutorStore;
  readonly engine: Engine;
  readonly executor: ExecutorState;
  readonly logger: Logger;
  readonly pollMs: number;
  readonly maxConcurrent: number;
  readonly deadLetterError: string;
  readonly counters: FleetCounters;
  /** Workflows run here that have run before. Somebody may have asked about them while they did not. */
  readonly onReturned: () => void;
}

/**
 * Claims what there is to run: what executors left whose lease has expired, what is due, what was given back, and what waits in
 * queues. At launch at once, then at hints and, since hints get lost, at every poll. Polls are jittered, so that a fleet does not
 * come at once.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #repeater: Repeater;
  /** The last claim stopped because all slots were taken, here or in a queue: there may be more. */
  #isLimited = false;
  /** When the store wants to be asked again, in milliseconds from the last claim. */
  #againInMs = Infinity;
  #turns: string | null = null;
  /** How many are asked for: more while claims bring as many as they ask for. */
  #batch = CLAIM_BATCH;
  /** Claims in a row that were to be repeated soon and had brought nothing. */
  #inVain = 0;
  /** Executions that have ended. */
  #freed = 0;
  /** The last claim took all free slots: there may be more, for which slots have to get free first. */
  #isFull = false;
  #cancelFreedWait: (() => void) | undefined;
  /** When wake-ups were looked at, by the monotonic clock. */
  #wakeupsSeenAt = -Infinity;

  constructor(options: ClaimLoopOptions) {
    const { runtime, pollMs } = options;
    this.#options = options;
    this.#repeater = new Repeater(
      runtime,
      () => this.#claimAll(),
      () => Math.min(pollMs * (0.75 + runtime.random() / 2), this.#againInMs + runtime.random() * AGAIN_JITTER_MS),
    );
  }

  start(): void {
    this.#repeater.start();
    this.#repeater.wake();
  }

  wake(): void {
    this.#inVain = 0;
    this.#wakeupsSeenAt = -Infinity;
    this.#repeater.wake();
  }

  /** An execution has ended. What waits for its slot need not wait for the next poll. */
  slotFreed(): void {
    this.#freed += 1;
    if (this.#isFull) this.#fillLater();
    else if (this.#isLimited) this.#repeater.wake();
  }

  async stop(): Promise<void> {
    await this.#repeater.stop();
    this.#isFull = false;
    this.#cancelFreedWait?.();
  }

  /** Claims this one workflow, if it can be claimed. `requeues`: how often it came back without progress. */
  async claimOnly(workflowId: string, requeues: number): Promise<void> {
    await this.#claim({ limit: 1, only: [workflowId] }, requeues);
  }

  async #claimAll(): Promise<void> {
    const { runtime, engine, maxConcurrent, logger } = this.#options;
    this.#againInMs = Infinity;
    try {
      for (;;) {
        const freed = this.#freed;
        const free = maxConcurrent - engine.runningCount;
        if (free < (this.#isFull ? this.#enough : 1)) {
          this.#isFull = true;
          if (free > 0) this.#fillLater();
          return;
        }
        const limit = Math.min(this.#batch, free);
        const wakeupsSeen = runtime.now() - this.#wakeupsSeenAt < WAKEUPS_SEEN_MS;
        if (!wakeupsSeen) this.#wakeupsSeenAt = runtime.now();
        const { workflows, isLimited, againInMs, isSoon, turns } = await this.#claim({ limit, wakeupsSeen }, 0);
        this.#turns = turns;
        this.#isLimited = isLimited;
        this.#isFull = workflows.length === free;
        if (workflows.length > 0 || !isSoon) this.#inVain = 0;
        if (workflows.length === limit) {
          if (limit === this.#batch) this.#batch = Math.min(this.#batch * 2, LARGEST_CLAIM);
          continue;
        }
        // By half, as the next ones may be on their way: a drain that begins anew with small claims costs 3 µs a workflow more.
        this.#batch = Math.max(CLAIM_BATCH, this.#batch / 2);
        // A slot that got free while the claim looked elsewhere was not announced to anybody.
        if (isLimited && freed !== this.#freed) continue;
        if (againInMs === 0 && workflows.length > 0) continue;
        this.#againInMs = Math.min(againInMs ?? Infinity, isSoon ? SOON_MS * 2 ** this.#inVain++ : Infinity);
        return;
      }
    } catch (error) {
      logger.warn('A claim failed.', { code: codeOf(error) });
    }
  }

  /** So many free slots are filled without waiting for more. */
  get #enough(): number {
    return Math.min(ENOUGH_FREED, Math.ceil(this.#options.maxConcurrent / FREED_PART));
  }

  #fillLater(): void {
    const { runtime, engine, maxConcurrent } = this.#options;
    if (maxConcurrent - engine.runningCount >= this.#enough) {
      this.#repeater.wake();
      return;
    }
    this.#cancelFreedWait ??= runtime.startTimer(FREED_WAIT_MS, () => {
      this.#cancelFreedWait = undefined;
      this.#isFull = false;
      this.#repeater.wake();
    });
  }

  async #claim(wanted: Pick<ClaimRequest, 'limit' | 'only' | 'wakeupsSeen'>, requeues: number): Promise<ClaimAnswer> {
    const { runtime, store, engine, executor, deadLetterError, counters } = this.#options;
    counters.claims += 1;
    const sentAt = runtime.now();
    const answer = await store.claim({
      executor: executor.identity,
      appVersion: executor.appVersion,
      names: engine.catalog.names,
      deadLetterError,
      turns: this.#turns,
      ...wanted,
    });
    const workflows = await this.#stillOwned(answer.workflows, sentAt);
    for (const workflow of workflows) {
      counters.claimed += 1;
      if (workflow.reason === 'recovered') counters.recovered += 1;
      engine.adopt(workflow, requeues);
    }
    if (workflows.some(({ ownership }) => ownership.epoch > 1)) this.#options.onReturned();
    return answer;
  }

  async #stillOwned(claimed: readonly ClaimedWorkflow[], sentAt: number): Promise<readonly ClaimedWorkflow[]> {
    const { engine } = this.#options;
    const mayRun = await allHere(claimed.map(({ ownership }) => engine.mayRun(ownership, sentAt)));
    return claimed.filter((_, index) => mayRun[index]);
  }
}
