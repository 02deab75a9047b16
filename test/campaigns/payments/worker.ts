import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { STRUCK_PIPE, type ToWorker, type WorkerOptions } from './messages.js';
import type { Trap } from './points.js';

export type WorkerState = 'running' | 'stopped' | 'ended';

/** One worker process, as the campaign handles it. */
export class Worker {
  readonly executorId: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #state: WorkerState = 'running';

  private constructor(child: ChildProcess, executorId: string, onStruck: (worker: Worker, trap: Trap) => void) {
    this.#child = child;
    this.executorId = executorId;
    this.pid = child.pid ?? 0;
    this.#exited = once(child, 'exit').then(() => {
      this.#state = 'ended';
    });
    const lines = createInterface(child.stdio[STRUCK_PIPE] as Readable);
    lines.on('line', (line) => {
      const trap = JSON.parse(line) as Trap;
      this.#state = trap.blow === 'kill' ? 'ended' : 'stopped';
      onStruck(this, trap);
    });
  }

  /** Resolves when the executor is registered and claims. */
  static async launch(
    program: string,
    options: WorkerOptions,
    onStruck: (worker: Worker, trap: Trap) => void,
  ): Promise<Worker> {
    const child = fork(program, [JSON.stringify(options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
    });
    const worker = new Worker(child, options.executorId, onStruck);
    const ended = worker.#exited.then(() => {
      throw new Error(`${options.executorId} ended before it was launched.`);
    });
    await Promise.race([once(child, 'message'), ended]);
    // From here on its end is no failure.
    ended.catch(() => undefined);
    return worker;
  }

  get state(): WorkerState {
    return this.#state;
  }

  tell(message: ToWorker): void {
    if (this.#state !== 'ended') this.#child.send(message, () => undefined);
  }

  stop(): void {
    this.#state = 'stopped';
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    if (this.#state === 'ended') return;
    this.#state = 'running';
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the process has ended. */
  async kill(): Promise<void> {
    this.#state = 'ended';
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
