import { LostReplyError, type Link } from '../../src/store/memory/link.js';
import { SeededRandom } from '../campaigns/support/seeded-random.js';
import type { Auditor } from './auditor.js';
import type { Fate } from './scenario.js';
import type { Actor, World } from './world.js';

/** What the network does, in milliseconds: a way takes up to a few of them; a connection that is given up shows soon, or never. */
const SHORTEST_WAY_MS = 0.3;
const LONGEST_WAY_MS = 3;
const LONGEST_LATE_MS = 500;
const HOLE_MS = { min: 320, max: 900 };
const SLOW_REPLY_MS = { min: 20, max: 450 };

/** Shared by all links: how slow the database is. */
export interface Weather {
  /** Until when calls wait for up to {@link slowMs}. */
  slowUntil: number;
}

const SLOWEST_CALL_MS = 120;

/** The way of one process to the database, with the faults that it is told to have. */
export class FaultyLink implements Link {
  readonly #world: World;
  readonly #actor: Actor;
  readonly #auditor: Auditor;
  readonly #weather: Weather;
  readonly #chance: SeededRandom;
  readonly #workerClock: () => number;
  readonly #fates: Fate[] = [];
  /** Calls that are on their way to the database, and calls that wait for their ends. */
  #arriving = 0;
  #open = 0;

  constructor(parts: {
    readonly world: World;
    readonly actor: Actor;
    readonly auditor: Auditor;
    readonly weather: Weather;
    readonly workerClock: () => number;
    readonly seed: number;
  }) {
    this.#world = parts.world;
    this.#actor = parts.actor;
    this.#auditor = parts.auditor;
    this.#weather = parts.weather;
    this.#workerClock = parts.workerClock;
    this.#chance = new SeededRandom(parts.seed);
  }

  /** What becomes of the next calls. */
  strike(fate: Fate, count: number): void {
    for (let left = count; left > 0; left--) this.#fates.push(fate);
  }

  /** Whether something is on its way to the database, or back. What a dead process has sent arrives, too. */
  get isBusy(): boolean {
    return this.#arriving > 0 || (this.#open > 0 && !this.#actor.isDead);
  }

  heal(): void {
    this.#fates.length = 0;
  }

  call<Reply>(transaction: () => Reply): Promise<Reply> {
    return new Promise((resolve, reject) => {
      // What a dead process still had to do never happens.
      if (this.#actor.isDead) return;
      const fate = this.#fates.shift();
      const wayMs = this.#way() + this.#waitMs();
      this.#open += 1;
      if (fate !== 'request-lost') this.#arriving += 1;
      const lost = (): void => {
        this.#open -= 1;
        reject(new LostReplyError('No reply came.'));
      };
      switch (fate) {
        case undefined:
        case 'slow-reply':
          this.#world.in(wayMs, undefined, () => {
            const reply = this.#carryOut(transaction);
            const backMs =
              fate === undefined ? this.#way() : this.#chance.between(SLOW_REPLY_MS.min, SLOW_REPLY_MS.max);
            this.#world.in(backMs, this.#actor, () => {
              this.#open -= 1;
              if (reply.kind === 'reply') resolve(reply.value);
              else reject(reply.error);
            });
          });
          break;
        case 'request-lost':
          this.#world.in(wayMs, this.#actor, lost);
          break;
        case 'reply-lost':
        case 'hole':
          this.#world.in(wayMs, undefined, () => {
            this.#carryOut(transaction, true);
          });
          this.#world.in(
            wayMs + (fate === 'hole' ? this.#chance.between(HOLE_MS.min, HOLE_MS.max) : this.#way()),
            this.#actor,
            lost,
          );
          break;
        case 'late':
          this.#world.in(wayMs + this.#chance.between(0, LONGEST_LATE_MS), undefined, () => {
            this.#carryOut(transaction, true);
          });
          this.#world.in(this.#way(), this.#actor, lost);
          break;
      }
    });
  }

  /** A tenth of them get lost or doubled. */
  hint(deliver: () => void): void {
    if (this.#actor.isDead) return;
    const luck = this.#chance.next();
    if (luck < 0.05) return;
    this.#world.in(this.#way(), this.#actor, deliver);
    if (luck < 0.1) this.#world.in(this.#way() * 10, this.#actor, deliver);
  }

  #carryOut<Reply>(
    transaction: () => Reply,
    isUnheard = false,
  ): { readonly kind: 'reply'; readonly value: Reply } | { readonly kind: 'error'; readonly error: Error } {
    this.#arriving -= 1;
    // Mutants look at the clock of the process whose call it is.
    Object.assign(globalThis, { workerClock: this.#workerClock });
    try {
      return { kind: 'reply', value: this.#auditor.watch(this.#actor, transaction, isUnheard) };
    } catch (error) {
      return { kind: 'error', error: error as Error };
    }
  }

  #way(): number {
    // Most are short.
    return SHORTEST_WAY_MS + this.#chance.next() ** 3 * LONGEST_WAY_MS;
  }

  #waitMs(): number {
    return this.#world.now < this.#weather.slowUntil ? this.#chance.next() * SLOWEST_CALL_MS : 0;
  }
}
