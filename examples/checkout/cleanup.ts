import { constants } from 'node:os';

const LONGEST_CLEANUP_MS = 15_000;
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

  /** From here on, failures are only the consequence of everything being undone. */
  get isRunning(): boolean {
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
    if (this.isRunning) return;
    setTimeout(() => process.exit(exitCode), LONGEST_CLEANUP_MS).unref();
    await this.run();
    process.exit(exitCode);
  }
}
