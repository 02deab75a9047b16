import type { Logger } from '../api/logger.js';
import { MAX_REQUEUES } from '../engine/execution.js';
import { startTimer } from '../engine/timer.js';
import { HoldfastError } from '../errors/holdfast-error.js';
import type { Ownership, WorkflowStore } from '../store/store.js';
import type { ClaimLoop } from './claim-loop.js';

export interface RequeuesOptions {
  readonly store: WorkflowStore;
  readonly claims: Pick<ClaimLoop, 'claimOnly'>;
  readonly logger: Logger;
  /** The encoded error that a livelocked workflow ends with. */
  readonly stuckError: string;
}

/**
 * Workflows that were given up because other writers kept moving their version. Each is released until a later time and
 * claimed again then by a wake-up that carries the count: the row knows nothing of it, and any process that claims the
 * workflow otherwise begins at zero. After {@link MAX_REQUEUES} without a single new checkpoint it is ended as stuck.
 */
export class Requeues {
  readonly #options: RequeuesOptions;
  readonly #timers = new Set<() => void>();
  #stopped = false;

  constructor(options: RequeuesOptions) {
    this.#options = options;
  }

  async requeue(ownership: Ownership, delayMs: number, requeues: number): Promise<void> {
    const { store, claims, logger, stuckError } = this.#options;
    const { workflowId } = ownership;
    try {
      if (requeues > MAX_REQUEUES) {
        logger.error('A workflow met other writers again and again without progress; it ends as stuck.', {
          workflowId,
          requeues,
        });
        await store.failStuck(ownership, stuckError);
        return;
      }
      await store.release(ownership, { to: 'DELAYED', wakeInMs: delayMs });
    } catch (error) {
      logger.warn('A workflow could not be requeued; it is given back at a later heartbeat.', {
        workflowId,
        code: error instanceof HoldfastError ? error.code : undefined,
      });
      return;
    }
    if (this.#stopped) return;
    const cancel = startTimer(delayMs, () => {
      this.#timers.delete(cancel);
      // Should this fail, the ordinary claim finds the workflow when it is due, with a count of zero.
      claims.claimOnly(workflowId, requeues).catch(() => undefined);
    });
    this.#timers.add(cancel);
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }
}
