import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Endpoint } from './endpoint.js';
import type { ExecutorOptions, FromExecutor, ToExecutor } from './messages.js';

/** One executor process, as the campaign handles it. Nothing happens to it; only to what it talks to. */
export class ExecutorProcess {
  readonly name: string;
  /** Its own way to the database. */
  readonly endpoint: Endpoint;
  readonly #child: ChildProcess;
  #isWanted = true;

  private constructor(child: ChildProcess, name: string, endpoint: Endpoint) {
    this.#child = child;
    this.name = name;
    this.endpoint = endpoint;
  }

  /** Resolves when it is registered and claims. */
  static async launch(program: string, endpoint: Endpoint, options: ExecutorOptions): Promise<ExecutorProcess> {
    const child = fork(program, [JSON.stringify(options)]);
    const executor = new ExecutorProcess(child, options.executorId, endpoint);
    child.once('exit', (code, signal) => {
      if (executor.#isWanted) throw new Error(`${options.executorId} ended by itself: ${String(signal ?? code)}.`);
    });
    await executor.#hears('launched');
    return executor;
  }

  hear(workflowIds: readonly string[]): void {
    this.#tell({ do: 'hear', workflowIds });
  }

  async calm(): Promise<void> {
    this.#tell({ do: 'calm' });
    await this.#hears('calm');
  }

  async end(): Promise<void> {
    this.#isWanted = false;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #tell(message: ToExecutor): void {
    this.#child.send(message, () => undefined);
  }

  #hears(what: FromExecutor['what']): Promise<void> {
    return new Promise((resolve) => {
      const onMessage = (message: FromExecutor): void => {
        if (message.what !== what) return;
        this.#child.off('message', onMessage);
        resolve();
      };
      this.#child.on('message', onMessage);
    });
  }
}
