import type { Runtime } from '../../src/runtime/runtime.js';
import { SeededRandom } from '../campaigns/support/seeded-random.js';
import type { Actor, World } from './world.js';

/** How late a timer fires at most, in milliseconds, in a process that does not stand still. */
const LATEST_TIMER_MS = 2;
/** How long a round of the event loop takes at most, in milliseconds. */
const LONGEST_TURN_MS = 0.1;

/** Time and chance of one process. */
export class VirtualRuntime implements Runtime {
  readonly #world: World;
  readonly #actor: Actor;
  readonly #chance: SeededRandom;
  #uuids = 0;
  /** When the last callback of a turn is due: they come in the order in which they were asked for. */
  #turnAt = 0;
  /** How long the machine was suspended, during which the monotonic clock stood still. */
  #suspendedMs = 0;
  #sleepsUntil = 0;
  /** By how much somebody has set the wall clock. */
  #wallOffsetMs = 0;

  constructor(world: World, actor: Actor, seed: number) {
    this.#world = world;
    this.#actor = actor;
    this.#chance = new SeededRandom(seed);
  }

  now(): number {
    return this.#world.now - this.#suspendedMs;
  }

  wallNow(): number {
    return this.#world.now + this.#wallOffsetMs;
  }

  /** The machine is suspended until then. */
  sleepUntil(at: number): void {
    this.#suspendedMs += Math.max(0, at - Math.max(this.#world.now, this.#sleepsUntil));
    this.#sleepsUntil = Math.max(this.#sleepsUntil, at);
  }

  setWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  startTimer(delayMs: number, callback: () => void): () => void {
    const due = this.now() + delayMs;
    let cancel!: () => void;
    const arm = (): void => {
      const lateness = this.#chance.next() * LATEST_TIMER_MS;
      const happening = this.#world.in(Math.max(0, due - this.now()) + lateness, this.#actor, () => {
        if (this.now() < due) arm();
        else callback();
      });
      cancel = () => {
        happening.isCancelled = true;
      };
    };
    arm();
    return () => {
      cancel();
    };
  }

  nextTurn(callback: () => void): void {
    this.#turnAt = Math.max(this.#turnAt, this.#world.now + this.#chance.next() * LONGEST_TURN_MS);
    this.#world.in(this.#turnAt - this.#world.now, this.#actor, callback);
  }

  random(): number {
    return this.#chance.next();
  }

  /** None at all, but one that says where it was made. */
  randomUuid(): string {
    this.#uuids += 1;
    return `${this.#actor.name}#${String(this.#uuids)}`;
  }

  sortableUuid(): string {
    return this.randomUuid();
  }
}
