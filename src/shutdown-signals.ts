import { constants } from 'node:os';
import type { Logger } from './api/logger.js';

/** The signals that can ask a process to end, and that it can catch. */
export const SHUTDOWN_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
export type ShutdownSignal = (typeof SHUTDOWN_SIGNALS)[number];

/** How long the process is given to end by the signal, before it ends by its exit code. The first process of a container needs it. */
const RAISE_MS = 100;

export interface ShutdownSignalsOptions {
  readonly signals: readonly ShutdownSignal[];
  readonly close: () => Promise<void>;
  readonly logger: Logger;
}

/**
 * Closes at the first signal, and then lets the process end by it, unless somebody else listens, who then decides when. A second
 * signal ends the process at once: what it still owned is recovered when its lease has expired.
 */
export class ShutdownSignals {
  readonly #options: ShutdownSignalsOptions;
  #isClosing = false;

  constructor(options: ShutdownSignalsOptions) {
    this.#options = options;
  }

  start(): void {
    for (const signal of this.#options.signals) process.on(signal, this.#onSignal);
  }

  stop(): void {
    for (const signal of this.#options.signals) process.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const { close, logger } = this.#options;
    if (this.#isClosing) {
      logger.warn('A second signal: the process ends without waiting for its workflows.', { signal });
      this.stop();
      endBy(signal);
      return;
    }
    this.#isClosing = true;
    logger.info('A signal: closing.', { signal });
    close()
      .catch((error: unknown) => {
        logger.error('Closing at a signal failed.', { signal, error: String(error) });
      })
      .finally(() => {
        this.stop();
        // Whoever else listens (another Holdfast, the application) has been told as well.
        if (process.listenerCount(signal) === 0) endBy(signal);
      });
  };
}

function endBy(signal: NodeJS.Signals): void {
  process.exitCode = 128 + constants.signals[signal];
  if (process.listenerCount(signal) === 0) {
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(), RAISE_MS);
  } else {
    process.exit();
  }
}
