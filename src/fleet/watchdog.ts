import type { Logger } from '../api/logger.js';
import type { Engine } from '../engine/engine.js';
import type { RunningExecution } from '../engine/execution-host.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { WorkflowStore } from '../store/store.js';
import type { FleetCounters } from './fleet-counters.js';
import { Repeater } from './repeater.js';

/** Time between two looks at what runs here, in milliseconds. */
const LOOK_MS = 1_000;

export interface WatchdogOptions {
  readonly runtime: Runtime;
  readonly store: Pick<WorkflowStore, 'markStuck' | 'failStuck' | 'announceOutcome'>;
  readonly engine: Pick<Engine, 'runningExecutions'>;
  readonly logger: Logger;
  readonly counters: FleetCounters;
  /** The encoded error that a workflow ends with which is to fail. */
  readonly stalledError: string;
}

/**
 * Looks for executions that have made no progress for longer than their workflow allows: lists them for attention, or ends them.
 * One that goes on is taken off the list. A process whose event loop stands still is not found by this: its lease expires.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #repeater: Repeater;
  /** Executions that are listed. */
  #listed = new Set<RunningExecution>();

  constructor(options: WatchdogOptions, lookMs = LOOK_MS) {
    this.#options = options;
    this.#repeater = new Repeater(
      options.runtime,
      () => this.#look(),
      () => lookMs,
    );
  }

  start(): void {
    this.#repeater.start();
  }

  stop(): Promise<void> {
    return this.#repeater.stop();
  }

  /** Writes are not waited for: somebody may keep a row locked for as long as they like. */
  #look(): Promise<void> {
    const listed = new Set<RunningExecution>();
    for (const execution of this.#options.engine.runningExecutions()) {
      const { stuckAfterMs } = execution.definition;
      if (stuckAfterMs === null) continue;
      // What has been done is not left half undone.
      const onStuck = execution.isRollback ? 'report' : execution.definition.onStuck;
      const isListed = this.#listed.has(execution);
      if (execution.stalledMs <= stuckAfterMs) {
        if (isListed) void this.#write(execution, (store) => store.markStuck(execution.ownership, null));
        continue;
      }
      listed.add(execution);
      if (!isListed) void this.#report(execution, stuckAfterMs, onStuck);
    }
    this.#listed = listed;
    return Promise.resolve();
  }

  async #report(execution: RunningExecution, stuckAfterMs: number, onStuck: 'report' | 'fail'): Promise<void> {
    const { counters, logger, stalledError } = this.#options;
    const { workflowId, ownership } = execution;
    counters.stuck += 1;
    logger.warn('A workflow makes no progress.', {
      workflowId,
      workflow: execution.definition.name,
      stuckAfterMs,
      onStuck,
    });
    if (onStuck === 'report') {
      const detail = `No durable call has ended for ${String(stuckAfterMs)} ms, and nothing is waited for.`;
      await this.#write(execution, (store) => store.markStuck(ownership, detail));
      return;
    }
    if (execution.mayHaveToUndo) {
      await execution.beginRollback('failed', stalledError);
      return;
    }
    await this.#write(execution, async (store) => {
      await store.failStuck(ownership, stalledError);
      execution.lose('ended as stuck');
      store.announceOutcome(workflowId);
    });
  }

  async #write(
    { workflowId }: RunningExecution,
    act: (store: WatchdogOptions['store']) => Promise<void>,
  ): Promise<void> {
    const { store, logger } = this.#options;
    try {
      await act(store);
    } catch (error) {
      logger.warn('A workflow that makes no progress could not be marked.', {
        workflowId,
        code: codeOf(error),
      });
    }
  }
}
