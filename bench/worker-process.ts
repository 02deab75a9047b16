import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { Inbox } from './inbox.js';
import type { Command, LoadOrder, LoadResult } from './protocol.js';

const STOP_TIMEOUT_MS = 10_000;

/** One side of the comparison, in a process of its own: idle except when it is told to run. */
export class WorkerProcess {
  readonly about: string;
  readonly #child: ChildProcess;
  readonly #inbox: Inbox;

  private constructor(child: ChildProcess, inbox: Inbox, about: string) {
    this.#child = child;
    this.#inbox = inbox;
    this.about = about;
  }

  /** @param program path of the worker, relative to this directory */
  static async start(program: string, environment: Readonly<Record<string, string>>): Promise<WorkerProcess> {
    const child = fork(fileURLToPath(new URL(program, import.meta.url)), {
      env: { ...process.env, NODE_ENV: 'production', ...environment },
      execArgv: ['--import', import.meta.resolve('tsx')],
      // The table on stdout is the benchmark's own.
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    const inbox = new Inbox(child);
    try {
      const ready = await inbox.next('ready');
      return new WorkerProcess(child, inbox, ready.about);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** Runs one load; `onWindow` is called at both ends of what the result covers. */
  async run(order: LoadOrder, onWindow: (edge: 'opened' | 'closed') => Promise<void>): Promise<LoadResult> {
    this.#send({ type: 'run', order });
    await this.#inbox.next('window-opened');
    await onWindow('opened');
    await this.#inbox.next('window-closed');
    await onWindow('closed');
    return (await this.#inbox.next('result')).result;
  }

  async stop(): Promise<void> {
    if (!this.#child.connected) return;
    const exited = once(this.#child, 'exit');
    this.#send({ type: 'stop' });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }

  #send(command: Command): void {
    this.#child.send(command);
  }
}
