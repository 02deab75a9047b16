import { type SeededRandom } from '../support/seeded-random.js';
import type { LedgerClient } from './ledger/ledger-client.js';
import { Member } from './member.js';
import type { ProgramOptions } from './programs/messages.js';

/** What all executors of a run have in common. */
export type CrewOptions = Omit<ProgramOptions, 'who' | 'executorId' | 'seed'>;

/** How long one that was killed stays away at most, in leases; how often it comes back under its old name. */
const LONGEST_DOWN_LEASES = 0.5;
/** What it ran is recovered at once then, without waiting for the lease. */
const SAME_NAME = 0.25;

/** The executors of a run: as many as were asked for, give or take those that are just dead. */
export class Crew {
  readonly #program: string;
  readonly #common: CrewOptions;
  readonly #ledger: LedgerClient;
  readonly #random: SeededRandom;
  readonly #members = new Set<Member>();
  readonly #recoveries = new Set<Promise<void>>();
  readonly #onLaunch = new Set<(member: Member) => void>();
  #launched = 0;
  #refusalsOfDead = 0;
  /** The first that kept somebody from coming back. */
  #failure: { readonly cause: unknown } | undefined;
  #isOver = false;

  constructor(program: string, common: CrewOptions, ledger: LedgerClient, random: SeededRandom) {
    this.#program = program;
    this.#common = common;
    this.#ledger = ledger;
    this.#random = random;
  }

  /** Those that are neither dead nor stopped. */
  get running(): readonly Member[] {
    return [...this.#members].filter(({ state }) => state === 'running');
  }

  get all(): readonly Member[] {
    return [...this.#members];
  }

  /** Writes that were refused to executors that had lost what they were about, as their proxies saw it. */
  get refusals(): number {
    return this.all.reduce((sum, { proxy }) => sum + proxy.counters.refusals, this.#refusalsOfDead);
  }

  /** Calls back for each executor there is, and each that will be. @returns what ends it */
  eachMember(callback: (member: Member) => void): () => void {
    this.#onLaunch.add(callback);
    for (const member of this.running) callback(member);
    return () => this.#onLaunch.delete(callback);
  }

  async launch({
    program = this.#program,
    executorId,
  }: { program?: string; executorId?: string } = {}): Promise<Member> {
    const number = this.#launched++;
    const member = await Member.launch(
      program,
      {
        ...this.#common,
        who: `executor ${String(number)}`,
        executorId: executorId ?? `executor ${String(number)}`,
        seed: Math.floor(this.#random.next() * 1e9),
      },
      this.#ledger,
    );
    this.#members.add(member);
    for (const callback of this.#onLaunch) callback(member);
    return member;
  }

  /** Kills it, and sees to it that another one comes in its place. Resolves when it is dead. */
  async strikeDead(member: Member): Promise<void> {
    await this.dismiss(member);
    this.#recover(this.#replace(member));
  }

  /** Kills it for good. */
  async dismiss(member: Member): Promise<void> {
    this.#members.delete(member);
    this.#refusalsOfDead += member.proxy.counters.refusals;
    await member.kill();
  }

  /** Stops it for so long; it is done before this resolves. */
  async freeze(member: Member, ms: number): Promise<void> {
    member.stop();
    await later(ms);
    member.continue();
  }

  /** Resolves when everybody is well. @throws what kept an executor from coming back: the run is over then, and says nothing. */
  async allWell(): Promise<void> {
    while (this.#recoveries.size > 0) await Promise.all(this.#recoveries);
    if (this.#failure !== undefined) throw this.#failure.cause;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    const killAll = (): Promise<unknown> => Promise.allSettled(this.all.map((member) => member.kill()));
    await killAll();
    await Promise.allSettled(this.#recoveries);
    await killAll();
  }

  async #replace(member: Member): Promise<void> {
    const executorId = this.#random.next() < SAME_NAME ? member.executorId : undefined;
    await later(this.#random.between(0, LONGEST_DOWN_LEASES) * this.#common.leaseMs);
    if (!this.#isOver) await this.launch({ ...(executorId === undefined ? {} : { executorId }) });
  }

  #recover(recovery: Promise<void>): void {
    const known = recovery
      .catch((cause: unknown) => {
        this.#failure ??= { cause };
      })
      .finally(() => this.#recoveries.delete(known));
    this.#recoveries.add(known);
  }
}

export function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
