import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

import type { Memory, Question, SleeperExecutorOptions, Told } from './messages.js';

type Named<What extends Told['what']> = Extract<Told, { what: What }>;

/** The executor's process. */
export class SleeperExecutor {
  /** How long its launch took, in milliseconds. */
  readonly launchMs: number;
  /** When the step after the sleep began in each workflow, every time that it did; wall clock. */
  readonly fired: { readonly workflowId: string; readonly at: number }[];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, launchMs: number, fired: SleeperExecutor['fired']) {
    this.#child = child;
    this.launchMs = launchMs;
    this.fired = fired;
  }

  static async launch(program: string, options: SleeperExecutorOptions): Promise<SleeperExecutor> {
    const child = fork(program, [JSON.stringify(options)], { execArgv: ['--expose-gc'] });
    const fired: { workflowId: string; at: number }[] = [];
    child.on('message', (told: Told) => {
      if (told.what === 'fired') fired.push({ workflowId: told.workflowId, at: told.at });
    });
    const { tookMs } = await next(child, 'launched');
    return new SleeperExecutor(child, tookMs, fired);
  }

  async start(workflowId: string): Promise<void> {
    const started = next(this.#child, 'started');
    this.#ask({ do: 'start', workflowId });
    await started;
  }

  async memory(): Promise<Memory> {
    const memory = next(this.#child, 'memory');
    this.#ask({ do: 'memory' });
    return memory;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #ask(question: Question): void {
    this.#child.send(question);
  }
}

function next<What extends Told['what']>(child: ChildProcess, what: What): Promise<Named<What>> {
  return new Promise((resolve, reject) => {
    const onMessage = (told: Told): void => {
      if (told.what !== what) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(told as Named<What>);
    };
    const onExit = (): void => {
      reject(new Error(`The executor ended before it said "${what}".`));
    };
    child.on('message', onMessage);
    child.once('exit', onExit);
  });
}
