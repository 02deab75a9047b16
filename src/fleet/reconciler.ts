import type { Logger } from '../api/logger.js';
import type { Engine } from '../engine/engine.js';
import type { ExecutorIdentity, ExecutorStore, WorkflowStore } from '../store/store.js';

/**
 * Compares what this executor owns by the database's account with what it runs, at each heartbeat.
 *
 * Owned but not run: the reply to a claim or start was lost, or the dispatch failed. Given back, when it was so at two
 * comparisons in a row: at one it may just be on its way. Run but not owned: ownership was lost and the hint with it.
 */
export class Reconciler {
  readonly #store: ExecutorStore & WorkflowStore;
  readonly #engine: Engine;
  readonly #logger: Logger;
  #suspects = new Set<string>();

  constructor(store: ExecutorStore & WorkflowStore, engine: Engine, logger: Logger) {
    this.#store = store;
    this.#engine = engine;
    this.#logger = logger;
  }

  async reconcile(identity: ExecutorIdentity): Promise<void> {
    // Taken before the question: what starts meanwhile is not held against the answer.
    const running = [...this.#engine.runningExecutions()];
    const owned = await this.#store.ownedWorkflows(identity);
    const ownedTokens = new Set(owned.map(({ token }) => token));
    for (const execution of running) {
      if (!ownedTokens.has(execution.ownership.token) && execution.isRunning) execution.lose();
    }
    const suspects = new Set<string>();
    for (const { workflowId, token, recordVersion } of owned) {
      if (this.#engine.runningExecution(workflowId)?.ownership.token === token) continue;
      if (!this.#suspects.has(token)) {
        suspects.add(token);
        continue;
      }
      this.#logger.warn('A workflow was owned here without running; it is given back.', { workflowId });
      await this.#store.release(
        { workflowId, token, epoch: 0, recordVersion },
        { to: 'ENQUEUED', unspendAttempt: false },
      );
    }
    this.#suspects = suspects;
  }
}
