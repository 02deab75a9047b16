import { setTimeout as pause } from 'node:timers/promises';
import type { SeededRandom } from '../support/seeded-random.js';
import type { Crew } from './crew.js';
import type { FromOutside } from './messages.js';
import type { Outside } from './outside.js';
import type { PaymentsOptions } from './plan.js';
import { BLOWS, isOutside, POINTS, type Trap } from './points.js';

/** So many workers are left alone at any moment. */
const LEAST_WELL = 2;
/** Share of the strikes that hit at no point that was chosen. */
const RANDOM_SHARE = 0.15;
/** So long traps wait for somebody. */
const PATIENCE_MS = 4_000;
/** Mean time between two times at which the outside world refuses connections, and how long it does. */
const SHUT_EVERY_MS = 10_000;
const SHUT_MS = 700;

/** Kills and stops workers, at every point as often as at any other, for as long as the options say. */
export class Strikes {
  readonly #options: PaymentsOptions;
  readonly #crew: Crew;
  readonly #outside: Outside;
  readonly #random: SeededRandom;
  readonly #traps = POINTS.flatMap((point) => BLOWS.map((blow): Trap => ({ point, blow })));

  constructor(options: PaymentsOptions, crew: Crew, outside: Outside, random: SeededRandom) {
    this.#options = options;
    this.#crew = crew;
    this.#outside = outside;
    outside.onHeld((held) => {
      this.#held(held);
    });
    this.#random = random;
  }

  /** A request is held in the outside world: its worker is struck, and the request goes on. */
  #held({ trap, worker }: Extract<FromOutside, { what: 'held' }>): void {
    const victim = this.#crew.byPid(worker);
    if (victim?.state === 'running') this.#crew.strike(victim, trap);
    this.#outside.tell({ do: 'let-go' });
  }

  /** Ends when all are well again. */
  async run(): Promise<void> {
    const until = performance.now() + this.#options.chaosMs;
    await Promise.all([this.#strike(until), this.#shut(until)]);
    await this.#crew.allWell();
  }

  async #strike(until: number): Promise<void> {
    for (;;) {
      const waitMs = this.#options.strikeMs * this.#random.between(0.2, 1.8);
      if (performance.now() + waitMs >= until) return;
      await pause(waitMs);
      const { running } = this.#crew;
      const victim = this.#random.pick(running);
      if (victim === undefined || running.length <= LEAST_WELL) continue;
      if (this.#random.next() >= RANDOM_SHARE) await this.#setTraps(until);
      else this.#crew.strike(victim, { point: 'at random', blow: this.#random.pick(BLOWS) ?? 'kill' });
    }
  }

  /** Waits until somebody has stepped into one, or patience is at its end. */
  async #setTraps(until: number): Promise<void> {
    const before = this.#crew.strikes.length;
    this.#set(this.#leastHit());
    const deadline = Math.min(until, performance.now() + PATIENCE_MS);
    while (this.#crew.strikes.length === before && performance.now() < deadline) await pause(10);
    this.#set([]);
  }

  #set(traps: readonly Trap[]): void {
    this.#outside.tell({ do: 'arm', traps: traps.filter(({ point }) => isOutside(point)) });
    const inside = traps.filter(({ point }) => !isOutside(point));
    for (const worker of this.#crew.running) worker.tell({ traps: inside });
  }

  #leastHit(): readonly Trap[] {
    const hits = ({ point, blow }: Trap): number =>
      this.#crew.strikes.filter((strike) => strike.point === point && strike.blow === blow).length;
    return this.#traps
      .map((trap) => ({ trap, place: hits(trap) + this.#random.next() }))
      .sort((a, b) => a.place - b.place)
      .slice(0, this.#options.traps)
      .map(({ trap }) => trap);
  }

  async #shut(until: number): Promise<void> {
    for (;;) {
      const waitMs = SHUT_EVERY_MS * this.#random.between(0.2, 1.8);
      if (performance.now() + waitMs >= until) return;
      await pause(waitMs);
      this.#outside.tell({ do: 'shut' });
      await pause(SHUT_MS);
      this.#outside.tell({ do: 'open' });
    }
  }
}
