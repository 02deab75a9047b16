import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { PROVIDER_VARIABLE } from '../payment-provider.js';

const PROGRAM = fileURLToPath(new URL('./worker.ts', import.meta.url));

/** A worker, seen from the demonstration. */
export class WorkerProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when it is at work. */
  static async launch(databaseUrl: string, providerUrl: string): Promise<WorkerProcess> {
    const child = fork(PROGRAM, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, DATABASE_URL: databaseUrl, [PROVIDER_VARIABLE]: providerUrl },
    });
    const worker = new WorkerProcess(child);
    const failed = once(child, 'exit').then(() => {
      throw new Error('A worker ended before it was at work.');
    });
    await Promise.race([once(child, 'message'), failed]);
    failed.catch(() => undefined);
    return worker;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** As if the power went off. */
  async kill(): Promise<void> {
    await this.#end(() => this.#child.kill('SIGKILL'));
  }

  /** Ends it in an orderly way. */
  async stop(): Promise<void> {
    await this.#end(() => this.#child.send('stop', () => undefined));
  }

  async #end(how: () => unknown): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    how();
    await exited;
  }
}
