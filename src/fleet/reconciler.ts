import type { Logger } from '../api/logger.js';
import type { Engine } from '../engine/engine.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ExecutorIdentity, ExecutorStore, OwnedWorkflow, WorkflowStore } from '../store/store.js';
import type { FleetCounters } from './fleet-counters.js';
import { Repeater } from './repeater.js';

export interface ReconcilerOptions {
  readonly runtime: Runtime;
  readonly store: ExecutorStore & WorkflowStore;
  readonly engine: Engine;
  readonly logger: Logger;
  readonly counters: FleetCounters;
  /** Milliseconds between two comparisons. */
  readonly intervalMs: number;
  readonly identity: () => ExecutorIdentity;
  /** What ran at `since` (monotonic) and is not owned any more has been told so. */
  readonly onCompared: (since: number) => void;
}

/** How long something is owned without running before it is given back: two comparisons may follow each other closely. */
export function leastSuspicionMs(intervalMs: number): number {
  return intervalMs / 2;
}

/**
 * Compares what this executor owns by the database's account with what it runs, again and again.
 *
 * Owned but not run: the reply to a claim or start was lost, or the dispatch failed. Given back, when it was so for a
 * while: at one comparison it may just be on its way. Run but not owned: ownership was lost and the hint with it.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #repeater: Repeater;
  readonly #givingBack = new Set<string>();
  /** Tokens of what was owned and not run at the last comparison, with the time (monotonic) since when. */
  #suspects = new Map<string, number>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#repeater = new Repeater(
      options.runtime,
      () => this.#compare(),
      () => options.intervalMs,
    );
  }

  start(): void {
    this.#repeater.start();
  }

  isGivingBack(token: string): boolean {
    return this.#givingBack.has(token);
  }

  /** Compares now, or once more after the comparison that is under way. */
  wake(): void {
    this.#repeater.wake();
  }

  /** A comparison that is under way is not waited for: whatever it still does is checked by token. */
  stop(): void {
    void this.#repeater.stop();
  }

  async #compare(): Promise<void> {
    const { runtime, store, engine, identity, intervalMs, onCompared, logger } = this.#options;
    // Taken before the question: what starts meanwhile is not held against the answer.
    const since = runtime.now();
    const running = [...engine.runningExecutions()];
    let owned: readonly OwnedWorkflow[];
    try {
      owned = await store.ownedWorkflows(identity());
    } catch (error) {
      // Closed meanwhile, or refused: nothing is known, so nothing is done.
      logger.warn('What this executor owns could not be read.', { code: codeOf(error) });
      return;
    }
    // A suspicion begins when the answer is there: what it tells of was sent before, and is late at the earliest when this has lasted.
    const answeredAt = runtime.now();
    const ownedTokens = new Set(owned.map(({ token }) => token));
    for (const execution of running) {
      if (!ownedTokens.has(execution.ownership.token) && execution.isRunning) execution.lose();
    }
    onCompared(since);
    const suspects = new Map<string, number>();
    for (const workflow of owned) {
      if (engine.isHere(workflow.workflowId, workflow.token)) continue;
      const suspectedSince = this.#suspects.get(workflow.token) ?? answeredAt;
      suspects.set(workflow.token, suspectedSince);
      if (since - suspectedSince >= leastSuspicionMs(intervalMs)) void this.#giveBack(workflow);
    }
    this.#suspects = suspects;
  }

  /** Not waited for: somebody may keep the row locked for as long as they like. */
  async #giveBack({ workflowId, token, recordVersion }: OwnedWorkflow): Promise<void> {
    const { store, logger } = this.#options;
    if (this.#givingBack.has(token)) return;
    this.#givingBack.add(token);
    this.#options.counters.strays += 1;
    logger.warn('A workflow was owned here without running; it is given back.', { workflowId });
    try {
      await store.release({ workflowId, token, epoch: 0, recordVersion }, { to: 'ENQUEUED', unspendAttempt: false });
    } catch (error) {
      logger.warn('A workflow could not be given back.', { workflowId, code: codeOf(error) });
    } finally {
      this.#givingBack.delete(token);
    }
  }
}
