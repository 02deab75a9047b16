import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Order } from './checkout.js';
import type { Cleanup } from './cleanup.js';
import { type Hold, HOLD_VARIABLE } from './hold.js';
import type { FromWorker, ToWorker } from './messages.js';
import { WORLD_LOG_VARIABLE } from './outside-world.js';
import { StoryError } from './story-error.js';

const WORKER_PROGRAM = fileURLToPath(new URL('./worker.ts', import.meta.url));
const LONGEST_WAIT_MS = 30_000;

/** What all workers of the story are given. */
export interface WorkerSettings {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly worldLogPath: string;
}

type Kind = FromWorker['kind'];
type Message<K extends Kind> = Extract<FromWorker, { readonly kind: K }>;

interface Waiting {
  readonly take: (message: FromWorker) => boolean;
  readonly fail: (reason: Error) => void;
}

/** A worker, seen from the story: a process that is told what to start, and that can be killed and frozen. */
export class WorkerProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #received: FromWorker[] = [];
  readonly #waiting = new Set<Waiting>();
  readonly #exited: Promise<number | null>;
  #hasExited = false;

  /** Starts a worker and waits until it is at work. `hold` names a step in which it is to hang. */
  static async launch(name: string, settings: WorkerSettings, cleanup: Cleanup, hold?: Hold): Promise<WorkerProcess> {
    const worker = new WorkerProcess(name, settings, hold);
    cleanup.add(() => worker.kill());
    await worker.next('ready', () => true, 'being ready');
    return worker;
  }

  private constructor(name: string, settings: WorkerSettings, hold: Hold | undefined) {
    this.name = name;
    this.#child = fork(WORKER_PROGRAM, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: {
        ...process.env,
        DATABASE_URL: settings.databaseUrl,
        CHECKOUT_SCHEMA: settings.schema,
        [WORLD_LOG_VARIABLE]: settings.worldLogPath,
        ...(hold === undefined ? {} : { [HOLD_VARIABLE]: JSON.stringify(hold) }),
      },
    });
    this.#child.on('message', (message) => {
      // Only worker.ts is at the other end.
      this.#receive(message as FromWorker);
    });
    this.#exited = new Promise((resolve) => {
      const end = (code: number | null): void => {
        this.#hasExited = true;
        for (const { fail } of this.#waiting) fail(new StoryError(`${this.name} ended before it was to.`));
        resolve(code);
      };
      this.#child.once('exit', end);
      this.#child.once('error', () => {
        end(null);
      });
    });
  }

  get processId(): number {
    return this.#child.pid ?? 0;
  }

  start(order: Order): void {
    this.#tell({ kind: 'start', order });
  }

  /** Lets the step that hangs go on. A frozen process reads it when it is thawed. */
  letGo(): void {
    this.#tell({ kind: 'let-go' });
  }

  /** As if the power went off. */
  async kill(): Promise<void> {
    if (this.#hasExited) return;
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** As if the machine stalled: nothing in the process runs, and its connections stay open. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends it in an orderly way. */
  async stop(): Promise<void> {
    this.#tell({ kind: 'stop' });
    const code = await this.#exited;
    if (code !== 0) throw new StoryError(`${this.name} was asked to stop and ended with exit code ${String(code)}.`);
  }

  /** The first message of a kind that fits, whether it has come already or not. */
  next<K extends Kind>(kind: K, fits: (message: Message<K>) => boolean, what: string): Promise<Message<K>> {
    const isIt = (message: FromWorker): message is Message<K> => message.kind === kind && fits(message as Message<K>);
    const earlier = this.#received.find(isIt);
    if (earlier !== undefined) return Promise.resolve(earlier);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting = {
        take: (message) => {
          if (!isIt(message)) return false;
          end();
          resolve(message);
          return true;
        },
        fail: (reason) => {
          end();
          reject(reason);
        },
      };
      const timer = setTimeout(() => {
        waiting.fail(new StoryError(`Waited ${String(LONGEST_WAIT_MS)} ms in vain for ${this.name} ${what}.`));
      }, LONGEST_WAIT_MS);
      this.#waiting.add(waiting);
      if (this.#hasExited) waiting.fail(new StoryError(`${this.name} ended before it was to.`));
    });
  }

  #receive(message: FromWorker): void {
    this.#received.push(message);
    for (const waiting of [...this.#waiting]) waiting.take(message);
  }

  #tell(message: ToWorker): void {
    // A process that has gone meanwhile shows where something is waited for.
    this.#child.send(message, () => undefined);
  }
}
