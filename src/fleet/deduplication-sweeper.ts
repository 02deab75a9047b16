import type { Logger } from '../api/logger.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { QueueStore } from '../store/queue-store.js';
import { Repeater } from './repeater.js';

/** Time between two sweeps of one executor, in milliseconds. */
const SWEEP_INTERVAL_MS = 60_000;
/** Deduplication IDs looked at in one sweep. */
const SWEEP_ROWS = 1_000;

/** Clears away deduplication IDs that nobody holds any more. They stand in nobody's way; they only take up room. */
export class DeduplicationSweeper {
  readonly #repeater: Repeater;

  constructor(runtime: Runtime, store: Pick<QueueStore, 'clearDeduplication'>, logger: Logger) {
    this.#repeater = new Repeater(
      runtime,
      async () => {
        try {
          await store.clearDeduplication(SWEEP_ROWS);
        } catch (error) {
          logger.warn('Deduplication IDs could not be cleared.', {
            code: codeOf(error),
          });
        }
      },
      () => SWEEP_INTERVAL_MS * (0.5 + runtime.random()),
    );
  }

  start(): void {
    this.#repeater.start();
  }

  stop(): Promise<void> {
    return this.#repeater.stop();
  }
}
