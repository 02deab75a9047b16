import type { Logger } from '../api/logger.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Ownership, WorkflowStore } from '../store/store.js';
import type { ClaimLoop } from './claim-loop.js';
import type { FleetCounters } from './fleet-counters.js';

/** What becomes of a workflow whose version others keep moving. */
export interface RequeuePolicy {
  /** Requeues without one new checkpoint before a workflow counts as livelocked. */
  readonly maxRequeues: number;
  /** Milliseconds before the first requeue is claimed; doubles with each. */
  readonly firstDelayMs: number;
  /** Milliseconds that the delay never exceeds. */
  readonly longestDelayMs: number;
}

export const REQUEUE_POLICY: RequeuePolicy = { maxRequeues: 20, firstDelayMs: 100, longestDelayMs: 10_000 };

export interface RequeuesOptions {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  readonly claims: Pick<ClaimLoop, 'claimOnly'>;
  readonly logger: Logger;
  readonly counters: FleetCounters;
  /** The encoded error that a livelocked workflow ends with. */
  readonly stuckError: string;
  /** Default {@link REQUEUE_POLICY}. */
  readonly policy?: RequeuePolicy | undefined;
}

/**
 * Workflows that were given up because other writers kept moving their version. Each is released until a later time and
 * claimed again then by a wake-up that carries the count: the row knows nothing of it, and any process that claims the
 * workflow otherwise begins at zero. After `maxRequeues` without a single new checkpoint it is ended as stuck.
 */
export class Requeues {
  readonly #options: RequeuesOptions;
  readonly #timers = new Set<() => void>();
  #stopped = false;

  constructor(options: RequeuesOptions) {
    this.#options = options;
  }

  /** `requeues`: how often in a row, this one included. */
  async requeue(ownership: Ownership, requeues: number): Promise<void> {
    const { store, logger, stuckError, policy = REQUEUE_POLICY } = this.#options;
    const { workflowId } = ownership;
    try {
      if (requeues > policy.maxRequeues) {
        logger.error('A workflow met other writers again and again without progress; it ends as stuck.', {
          workflowId,
          requeues,
        });
        this.#options.counters.livelocks += 1;
        await store.failStuck(ownership, stuckError);
        return;
      }
      const delayMs = Math.min(policy.longestDelayMs, policy.firstDelayMs * 2 ** Math.min(requeues - 1, 20));
      const { kind } = await store.release(ownership, { to: 'DELAYED', wakeInMs: delayMs, unspendAttempt: true });
      // Not even giving it up gets through. That is no progress either.
      if (kind === 'conflict') this.#later(delayMs, () => void this.requeue(ownership, requeues + 1));
      else if (kind === 'written') this.#later(delayMs, () => void this.#claim(workflowId, requeues));
    } catch (error) {
      logger.warn('A workflow could not be requeued; it is given back at a later heartbeat.', {
        workflowId,
        code: codeOf(error),
      });
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  async #claim(workflowId: string, requeues: number): Promise<void> {
    try {
      await this.#options.claims.claimOnly(workflowId, requeues);
    } catch {
      // The ordinary claim finds the workflow, with a count of zero.
    }
  }

  #later(delayMs: number, callback: () => void): void {
    if (this.#stopped) return;
    const cancel = this.#options.runtime.startTimer(delayMs, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }
}
