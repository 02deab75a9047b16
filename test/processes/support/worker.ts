import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutorHealth } from '../../../src/index.js';
import { bundle, type Bundle } from '../../support/bundle.js';
import { launchDefaults } from '../../support/conditions.js';
import { gate, type Gate } from '../../support/launch.js';
import type { Announcement, Command, LaunchOptions, Reply, ToWorker, WorkflowName } from './messages.js';

const FIXTURE = new URL('../fixtures/worker.ts', import.meta.url);

/** One body, or pause, that began in some process: counted outside of the database. */
export interface Run extends Omit<Announcement, 'kind' | 'id'> {
  readonly ticket: number;
  readonly pid: number;
}

/** An announcement that gets no answer before the test says so. */
export interface Held {
  /** Resolves when it has been made. */
  readonly arrived: Promise<Run>;
  release(): void;
}

interface Hold {
  readonly name: string;
  readonly arrival: Gate<Run>;
  readonly leave: Gate;
}

/** Compiles the worker once, and forks as many as a test wants. All that their bodies announce is in `runs`. */
export class Workers {
  readonly runs: Run[] = [];
  readonly #bundle: Bundle;
  readonly #alive = new Set<Worker>();

  private constructor(compiled: Bundle) {
    this.#bundle = compiled;
  }

  static async prepare(): Promise<Workers> {
    return new Workers(await bundle(FIXTURE));
  }

  /** Resolves when the process has registered its executor. It works under the condition that this run is under. */
  async launch(options: LaunchOptions): Promise<Worker> {
    const worker = new Worker(
      fork(this.#bundle.program, [JSON.stringify({ ...launchDefaults(), ...options })]),
      this.runs,
    );
    this.#alive.add(worker);
    await worker.launched;
    return worker;
  }

  runsOf(workflowId: string, what: Announcement['what'] = 'body'): Run[] {
    return this.runs.filter((run) => run.what === what && run.workflowId.startsWith(workflowId));
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#alive].map((worker) => worker.kill()));
    this.#alive.clear();
  }

  async close(): Promise<void> {
    await this.killAll();
    await this.#bundle.remove();
  }
}

/** A process with one Holdfast in it. */
export class Worker {
  readonly launched: Promise<unknown>;
  readonly #child: ChildProcess;
  readonly #runs: Run[];
  readonly #exited: Promise<readonly unknown[]>;
  readonly #pending = new Map<number, { resolve: (value: unknown) => void; reject: (cause: unknown) => void }>();
  readonly #holds: Hold[] = [];
  #commands = 0;

  constructor(child: ChildProcess, runs: Run[]) {
    this.#child = child;
    this.#runs = runs;
    this.#exited = once(child, 'exit');
    this.launched = this.#replyTo(0);
    child.on('message', (message: Announcement | Reply) => {
      if (message.kind === 'announcement') void this.#hear(message);
      else this.#settle(message);
    });
    child.once('exit', (code, signal) => {
      for (const { reject } of this.#pending.values()) {
        reject(new Error(`The process has ended: ${String(signal ?? code)}.`));
      }
      this.#pending.clear();
    });
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The next announcement of this name is not answered until `release`. */
  hold(name: string): Held {
    const hold: Hold = { name, arrival: gate<Run>(), leave: gate() };
    this.#holds.push(hold);
    return {
      arrived: hold.arrival.opened,
      release: () => {
        hold.leave.open();
      },
    };
  }

  /** Resolves when the start is acknowledged. */
  async start(name: WorkflowName, workflowId: string, ...args: unknown[]): Promise<void> {
    await this.#command({ do: 'start', name, workflowId, args });
  }

  result(workflowId: string): Promise<unknown> {
    return this.#command({ do: 'result', workflowId });
  }

  async health(): Promise<ExecutorHealth> {
    return (await this.#command({ do: 'health' })) as ExecutorHealth;
  }

  async closeHoldfast(): Promise<void> {
    await this.#command({ do: 'close' });
  }

  /** SIGSTOP: the process is there and does nothing. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  signal(name: 'SIGTERM' | 'SIGINT'): void {
    this.#child.kill(name);
  }

  /** Resolves when the process has ended, with what it ended by. */
  async ended(): Promise<unknown> {
    const [code, signal] = await this.#exited;
    return signal ?? code;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async #hear({ id, what, name, workflowId, epoch, key }: Announcement): Promise<void> {
    const ticket = this.#runs.length + 1;
    const run: Run = { what, name, workflowId, epoch, ticket, pid: this.#child.pid ?? 0, ...(key && { key }) };
    this.#runs.push(run);
    const index = this.#holds.findIndex((hold) => hold.name === name);
    const [hold] = index === -1 ? [] : this.#holds.splice(index, 1);
    if (hold !== undefined) {
      hold.arrival.open(run);
      await hold.leave.opened;
    }
    this.#send({ kind: 'answer', id, value: what === 'question' ? this.#ticketOf(name, workflowId) : ticket });
  }

  /** Whether a body has begun under this name, in whichever process: what the other side would find in its books. */
  #ticketOf(name: string, workflowId: string): number | null {
    const isIt = (run: Run): boolean => run.what === 'body' && run.name === name && run.workflowId === workflowId;
    return this.#runs.find(isIt)?.ticket ?? null;
  }

  #settle({ id, value, error }: Reply): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(Object.assign(new Error(error.message), { name: error.name, code: error.code }));
  }

  #command(command: DistributiveOmit<Command, 'kind' | 'id'>): Promise<unknown> {
    if (!this.isAlive) return Promise.reject(new Error('The process has ended.'));
    const id = ++this.#commands;
    const reply = this.#replyTo(id);
    this.#send({ kind: 'command', id, ...command });
    return reply;
  }

  #replyTo(id: number): Promise<unknown> {
    const reply = new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
    // Killed processes owe answers that nobody awaits.
    reply.catch(() => undefined);
    return reply;
  }

  #send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }
}

type DistributiveOmit<Union, Keys extends PropertyKey> = Union extends unknown ? Omit<Union, Keys> : never;
