import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type PgProxy, startPgProxyFor } from '../../support/pg-proxy.js';
import type { LedgerClient } from './ledger/ledger-client.js';
import type { Command, ProgramOptions, Reply } from './programs/messages.js';

export type MemberState = 'running' | 'stopped' | 'ended';

/** How long a process may take to answer a command before it counts as hung, in milliseconds. */
const ANSWER_MS = 60_000;
/** And to be ready. A machine with ten times as much to do as it can takes a minute to load a program. */
const LAUNCH_MS = 300_000;

/** One process of the campaign and its way to the database. Whatever is done to it goes into the ledger first. */
export class Member {
  readonly who: string;
  readonly executorId: string;
  readonly proxy: PgProxy;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ledger: LedgerClient;
  readonly #exited: Promise<unknown>;
  readonly #pending = new Map<number, { resolve: (value: unknown) => void; reject: (cause: Error) => void }>();
  #state: MemberState = 'running';
  #asked = 0;
  #troubles = 0;

  private constructor(child: ChildProcess, proxy: PgProxy, ledger: LedgerClient, options: ProgramOptions) {
    this.#child = child;
    this.#ledger = ledger;
    this.proxy = proxy;
    this.who = options.who;
    this.executorId = options.executorId;
    this.pid = child.pid ?? 0;
    this.#exited = once(child, 'exit');
    child.on('message', ({ id, value, error }: Reply) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value);
      else pending?.reject(new Error(error));
    });
    child.once('exit', (code, signal) => {
      const isKilled = this.#state === 'ended';
      if (!isKilled) this.#note('crashed');
      this.#state = 'ended';
      for (const { resolve, reject } of this.#pending.values()) {
        if (isKilled) resolve(undefined);
        else reject(new Error(`${this.who} ended: ${String(signal ?? code)}.`));
      }
      this.#pending.clear();
    });
  }

  /** Resolves when the process is ready, and under way. `options.database` is the server itself. */
  static async launch(program: string, options: ProgramOptions, ledger: LedgerClient): Promise<Member> {
    const proxy = await startPgProxyFor(options.database);
    const url = new URL(proxy.connectionString(options.database));
    url.searchParams.set('application_name', options.who);
    const child = fork(program, [JSON.stringify({ ...options, database: url.href })]);
    const member = new Member(child, proxy, ledger, options);
    try {
      await member.#replyTo(0, LAUNCH_MS);
    } catch (error) {
      // Nobody would know of it, and it would go on while the others are judged.
      await member.kill();
      throw error;
    }
    return member;
  }

  get state(): MemberState {
    return this.#state;
  }

  /** Resolves with the answer, or with undefined when the campaign kills the process before; rejects when it ends by itself. */
  async tell(command: Command): Promise<unknown> {
    if (this.#state === 'ended') return undefined;
    const id = ++this.#asked;
    const reply = this.#replyTo(id);
    this.#child.send({ id, ...command }, () => undefined);
    return reply;
  }

  /** Whether something is done to it that is not over. */
  get isTroubled(): boolean {
    return this.#troubles > 0;
  }

  /** Judges do not take for granted in this time that the process can do its part. */
  disturbed(): void {
    this.#troubles += 1;
    this.#note('disturbed');
  }

  undisturbed(): void {
    this.#troubles -= 1;
    this.#note('undisturbed');
  }

  /** Others are made to believe that it is dead. */
  expired(): void {
    this.#note('expired');
  }

  stop(): void {
    if (this.#state !== 'running') return;
    this.#note('stopped');
    this.#state = 'stopped';
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    if (this.#state !== 'stopped') return;
    this.#note('continued');
    this.#state = 'running';
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the process has ended, and nothing of it is left at its proxy. */
  async kill(): Promise<void> {
    if (this.#state !== 'ended') {
      this.#note('killed');
      this.#state = 'ended';
      this.#child.kill('SIGKILL');
      await this.#exited;
      this.#note('dead');
    }
    await this.proxy.close();
  }

  #note(
    happened: 'disturbed' | 'undisturbed' | 'expired' | 'stopped' | 'continued' | 'killed' | 'dead' | 'crashed',
  ): void {
    this.#ledger.note({ what: 'process', process: this.who, happened });
  }

  #replyTo(id: number, withinMs = ANSWER_MS): Promise<unknown> {
    const reply = new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`${this.who} has not answered for ${String(withinMs)} ms.`));
      }, withinMs);
      const settle =
        <Value>(how: (value: Value) => void) =>
        (value: Value): void => {
          clearTimeout(timer);
          how(value);
        };
      this.#pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
    });
    // Processes that end owe answers that nobody awaits.
    reply.catch(() => undefined);
    return reply;
  }
}
