import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

import type { Ledger } from './ledger.js';
import type { Command, ExecutorOptions, Job, Reply } from './messages.js';

type Question = Command extends infer Each ? (Each extends unknown ? Omit<Each, 'id'> : never) : never;

/** One executor process, as the campaign handles it. Whatever is done to it goes into the ledger first. */
export class ExecutorProcess {
  readonly executorId: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ledger: Ledger;
  readonly #exited: Promise<unknown>;
  readonly #pending = new Map<number, { resolve: (value: unknown) => void; reject: (cause: Error) => void }>();
  #state: 'running' | 'stopped' | 'ended' = 'running';
  #asked = 0;

  private constructor(child: ChildProcess, ledger: Ledger, executorId: string) {
    this.#child = child;
    this.#ledger = ledger;
    this.executorId = executorId;
    this.pid = child.pid ?? 0;
    this.#exited = once(child, 'exit');
    child.on('message', ({ id, value, error }: Reply) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value);
      else pending?.reject(new Error(error));
    });
    child.once('exit', (code, signal) => {
      if (this.#state !== 'ended') ledger.tell({ what: 'crashed' }, this.pid);
      this.#state = 'ended';
      for (const { reject } of this.#pending.values())
        reject(new Error(`The executor ended: ${String(signal ?? code)}.`));
      this.#pending.clear();
    });
  }

  /** Resolves when the executor is registered and claims. */
  static async launch(program: string, ledger: Ledger, options: ExecutorOptions): Promise<ExecutorProcess> {
    const executor = new ExecutorProcess(fork(program, [JSON.stringify(options)]), ledger, options.executorId);
    await executor.#replyTo(0);
    return executor;
  }

  get state(): 'running' | 'stopped' | 'ended' {
    return this.#state;
  }

  /** Resolves when the start is acknowledged; rejects when the process ends before. */
  async start(job: Job): Promise<void> {
    await this.#ask({ do: 'start', job });
  }

  async outcomes(workflowIds: readonly string[]): Promise<readonly unknown[]> {
    return (await this.#ask({ do: 'outcomes', workflowIds })) as readonly unknown[];
  }

  async calm(): Promise<void> {
    await this.#ask({ do: 'calm' });
  }

  stop(): void {
    this.#ledger.tell({ what: 'stopped' }, this.pid);
    this.#state = 'stopped';
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    if (this.#state !== 'stopped') return;
    this.#ledger.tell({ what: 'continued' }, this.pid);
    this.#state = 'running';
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the process has ended. */
  async kill(): Promise<void> {
    if (this.#state === 'ended') return;
    this.#ledger.tell({ what: 'killed' }, this.pid);
    this.#state = 'ended';
    this.#child.kill('SIGKILL');
    await this.#exited;
    this.#ledger.tell({ what: 'dead' }, this.pid);
  }

  #ask(question: Question): Promise<unknown> {
    if (this.#state === 'ended') return Promise.reject(new Error('The executor has ended.'));
    const id = ++this.#asked;
    const reply = this.#replyTo(id);
    this.#child.send({ id, ...question }, () => undefined);
    return reply;
  }

  #replyTo(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
  }
}
