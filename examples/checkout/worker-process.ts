import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Order } from './checkout.js';
import type { Cleanup } from './cleanup.js';
import { HOLD_VARIABLE, type Hold } from './hold.js';
import type { FromWorker, ToWorker } from './messages.js';
import { WORLD_LOG_VARIABLE } from './outside-world.js';
import { StoryError } from './story-error.js';

/** Longer than anything in the story takes: then something is wrong. */
const LONGEST_WAIT_MS = 40_000;

/** What all workers of one story share. */
export interface WorkerSettings {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly worldLog: string;
}

/** A worker in a process of its own, as the story sees it. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #heard: FromWorker[] = [];
  readonly #listeners = new Set<() => void>();

  private constructor(
    readonly name: string,
    child: ChildProcess,
  ) {
    this.#child = child;
    child.on('message', (message: FromWorker) => {
      this.#heard.push(message);
      this.#wake();
    });
    child.on('exit', () => {
      this.#wake();
    });
  }

  /** Starts a worker and waits until it is there. `hold`: the call in which it is to hang. */
  static async start(name: string, settings: WorkerSettings, cleanup: Cleanup, hold?: Hold): Promise<WorkerProcess> {
    const child = fork(fileURLToPath(new URL('worker.ts', import.meta.url)), [], {
      // The loader that runs this program runs the worker too.
      execArgv: process.execArgv,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: {
        ...process.env,
        DATABASE_URL: settings.databaseUrl,
        CHECKOUT_SCHEMA: settings.schema,
        [WORLD_LOG_VARIABLE]: settings.worldLog,
        ...(hold === undefined ? {} : { [HOLD_VARIABLE]: JSON.stringify(hold) }),
      },
    });
    // A frozen process is killed too; one that has ended does not mind.
    cleanup.add(() => child.kill('SIGKILL'));
    const worker = new WorkerProcess(name, child);
    await worker.hear('ready');
    return worker;
  }

  get processId(): number {
    return this.#child.pid ?? 0;
  }

  place(order: Order): void {
    this.#tell({ kind: 'start', order });
  }

  letGo(): void {
    this.#tell({ kind: 'let-go' });
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  /** Lets the worker give its work back and go. */
  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#tell({ kind: 'stop' });
    await exited;
  }

  /** The first message of a kind, about one order if given, that was heard or is going to be. */
  async hear<Kind extends FromWorker['kind']>(
    kind: Kind,
    orderId?: string,
  ): Promise<Extract<FromWorker, { readonly kind: Kind }>> {
    const deadline = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      for (const message of this.#heard) {
        if (message.kind !== kind) continue;
        if (orderId === undefined || ('orderId' in message && message.orderId === orderId)) {
          return message as Extract<FromWorker, { readonly kind: Kind }>;
        }
      }
      if (this.#child.exitCode !== null || this.#child.signalCode !== null || performance.now() > deadline) {
        throw new StoryError(`Worker ${this.name} was expected to say "${kind}", and ended or kept silent instead.`);
      }
      await this.#news(deadline - performance.now());
    }
  }

  async #news(longestMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#listeners.add(resolve);
      timer = setTimeout(resolve, Math.max(0, longestMs));
    });
    clearTimeout(timer);
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  #tell(message: ToWorker): void {
    this.#child.send(message);
  }
}
