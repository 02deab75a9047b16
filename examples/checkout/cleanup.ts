import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

const LONGEST_CLEANUP_MS = 15_000;
/** By then a signal that has ended another process of the group is here as well. */
const SIGNAL_MS = 250;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What has to be undone before this process ends, however it ends: processes, a schema or server, files. */
export class Cleanup {
  readonly #undo: (() => unknown)[] = [];
  #running: Promise<void> | undefined;

  constructor() {
    for (const signal of SIGNALS) {
      process.on(signal, () => void this.#endBy(128 + constants.signals[signal]));
    }
    // Nobody reads any further, as with `| head`.
    process.stdout.on('error', () => void this.#endBy(0));
  }

  /** What comes in last is undone first. */
  add(undo: () => unknown): void {
    this.#undo.push(undo);
  }

  /**
   * Whether a failure is only the consequence of everything being undone. A terminal signals all processes of its group at once, and that
   * a worker has ended by it may be heard of first.
   */
  async isCauseOfFailures(): Promise<boolean> {
    await pause(SIGNAL_MS);
    return this.#running !== undefined;
  }

  /** Undoes everything. Idempotent. */
  run(): Promise<void> {
    return (this.#running ??= this.#undoAll());
  }

  async #undoAll(): Promise<void> {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) {
      try {
        await undo();
      } catch (error) {
        // The rest has to be undone all the same.
        process.stderr.write(`Cleaning up: ${error instanceof Error ? error.message : String(error)}\n`);
      }
    }
  }

  async #endBy(exitCode: number): Promise<void> {
    if (this.#running !== undefined) return;
    setTimeout(() => process.exit(exitCode), LONGEST_CLEANUP_MS).unref();
    await this.run();
    process.exit(exitCode);
  }
}
