import type { ProtocolBench, Session } from '../support-protocol.js';
import { CONTROLS } from './controls.js';
import { EXECUTIONS } from './executions.js';
import { GATES, type Gate, type Gated } from './gates.js';
import { NEIGHBOURS } from './neighbours.js';
import type { Operation } from './operation.js';
import { endScene, observe, type Scene, type SceneKind, setScene } from './scenes.js';

export const OPERATIONS: readonly Operation[] = [...EXECUTIONS, ...CONTROLS, ...NEIGHBOURS];

/** Two operations on one workflow, in this order. */
export interface Pair {
  readonly kind: SceneKind;
  readonly first: Operation;
  readonly second: Operation;
}

export const ALL_PAIRS: readonly Pair[] = OPERATIONS.flatMap((first) =>
  OPERATIONS.flatMap((second) =>
    first.scenes.filter((kind) => second.scenes.includes(kind)).map((kind) => ({ kind, first, second })),
  ),
);

/**
 * How they meet: the second runs while the first one's transaction is open, which is then committed or rolled back; or both run into a
 * lock that somebody else holds.
 */
export type Meeting = 'COMMIT' | 'ROLLBACK' | Gate;

export interface Interleaving extends Pair {
  readonly how: Meeting;
}

const HELD = ['COMMIT', 'ROLLBACK'] as const;

/** Some of all interleavings, the same for the same seed: each pair in one way only. */
export function someInterleavings(count: number, seed: number): readonly Interleaving[] {
  const random = mulberry32(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  return Array.from({ length: count }, () => ({ ...pick(ALL_PAIRS), how: random() < 0.6 ? pick(HELD) : pick(GATES) }));
}

/** A generator of numbers from 0 to 1 that depends on its seed alone. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const nameOf = ({ kind, first, second }: Pair): string => `${kind}: ${first.label}, then ${second.label}`;

/** What operations leave that run one after the other, which is what concurrent ones have to look like. Made when asked for. */
export class Expectations {
  readonly #bench: ProtocolBench;
  readonly #made = new Map<string, Promise<string>>();
  /** What was wrong with what ran alone. */
  readonly faults: string[] = [];

  constructor(bench: ProtocolBench) {
    this.#bench = bench;
  }

  after(kind: SceneKind, ...operations: readonly Operation[]): Promise<string> {
    const key = `${kind}: ${operations.map(({ label }) => label).join(', then ')}`;
    let made = this.#made.get(key);
    if (made === undefined) {
      made = this.#run(key, kind, operations);
      this.#made.set(key, made);
    }
    return made;
  }

  async #run(key: string, kind: SceneKind, operations: readonly Operation[]): Promise<string> {
    const { ask } = this.#bench;
    const scene = await setScene(ask, kind);
    if (operations.length === 0) return endScene(ask, scene);
    let found = await this.after(kind);
    for (const [index, operation] of operations.entries()) {
      const before = found;
      const tried = await operation.run(ask, scene);
      found = await (index === operations.length - 1 ? endScene : observe)(ask, scene);
      if (tried === 'refused' && found !== before) this.faults.push(`${key}: refused, and yet something was written`);
      if (operation.isStale === true && found !== before)
        this.faults.push(`${key}: an old token or version has written`);
      this.faults.push(...versionFaults(before, found).map((fault) => `${key}: ${fault}`));
    }
    this.faults.push(...violationsIn(found).map((violation) => `${key}: ${violation}`));
    return found;
  }
}

const violationsIn = (found: string): readonly string[] =>
  (JSON.parse(found) as { violations: readonly string[] | null }).violations ?? [];

interface StatusRow {
  readonly workflow_id: string;
  readonly record_version: number;
}

/** Every write to a workflow's row raises its version. */
function versionFaults(before: string, after: string): string[] {
  const rows = (text: string): readonly StatusRow[] =>
    (JSON.parse(text) as { workflow_status: readonly StatusRow[] | null }).workflow_status ?? [];
  const old = new Map(rows(before).map((row) => [row.workflow_id, row]));
  return rows(after).flatMap((row) => {
    const was = old.get(row.workflow_id);
    if (was === undefined || JSON.stringify(was) === JSON.stringify(row)) return [];
    return row.record_version > was.record_version
      ? []
      : [`the row of ${row.workflow_id} was written, not its version`];
  });
}

/** Runs pairs of operations at once, and finds what was not one of the serial results. */
export class Interleavings {
  readonly #bench: ProtocolBench;
  readonly #expectations: Expectations;
  readonly #one: Session;
  readonly #two: Session;
  readonly #gated: Gated;
  /** Runs made so far. */
  runs = 0;

  private constructor(bench: ProtocolBench, expectations: Expectations, one: Session, two: Session, gated: Gated) {
    this.#bench = bench;
    this.#expectations = expectations;
    this.#one = one;
    this.#two = two;
    this.#gated = gated;
  }

  static async open(bench: ProtocolBench, expectations: Expectations, gated: Gated): Promise<Interleavings> {
    return new Interleavings(bench, expectations, await bench.session(), await bench.session(), gated);
  }

  async close(): Promise<void> {
    await Promise.all([this.#one.end(), this.#two.end()]);
  }

  /** What is wrong with these; stops after `most` of them. */
  async anomalies(interleavings: readonly Interleaving[], most = Infinity): Promise<string[]> {
    const found: string[] = [];
    for (const { how, ...pair } of interleavings) {
      const anomaly = await this.#run(pair, how);
      if (anomaly !== undefined)
        found.push(`${nameOf(pair)}, ${typeof how === 'string' ? how : how.label}: ${anomaly}`);
      if (found.length >= most) break;
    }
    return found;
  }

  /** All interleavings of a pair but those of gates that stop neither: such a one is no other than one after the other. */
  async allOf(pair: Pair): Promise<readonly Interleaving[]> {
    const gates: Gate[] = [];
    for (const gate of GATES) {
      const { kind, first, second } = pair;
      const stops = (await this.#gated.stops(gate, kind, first)) || (await this.#gated.stops(gate, kind, second));
      if (stops) gates.push(gate);
    }
    return [...HELD, ...gates].map((how) => ({ ...pair, how }));
  }

  async #run(pair: Pair, how: Meeting): Promise<string | undefined> {
    const { kind, first, second } = pair;
    this.runs += 1;
    const scene = await setScene(this.#bench.ask, kind);
    try {
      await (typeof how === 'string' ? this.#held(pair, scene, how) : this.#behind(pair, scene, how));
    } catch (error) {
      await this.#one.ask('ROLLBACK');
      return `failed with ${String((error as { code?: unknown }).code ?? error)}`;
    }
    const found = await endScene(this.#bench.ask, scene);
    const violations = violationsIn(found);
    if (violations.length > 0) return violations.join('\n');
    const expected =
      how === 'ROLLBACK'
        ? [await this.#expectations.after(kind, second)]
        : [await this.#expectations.after(kind, first, second), await this.#expectations.after(kind, second, first)];
    return expected.includes(found) ? undefined : differences(found, expected);
  }

  /** The second runs while the first one's transaction is open, which is then committed or rolled back. */
  async #held({ first, second }: Pair, scene: Scene, end: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    await this.#one.ask('BEGIN');
    await first.run(this.#one.ask, scene);
    const running = second.run(this.#two.ask, scene);
    await this.#bench.untilSettledOrBlocked(this.#two.pid, running);
    await this.#one.ask(end);
    // Held up, it has written nothing; its caller tries again.
    if ((await running) === 'held up') await second.run(this.#bench.ask, scene);
  }

  /** Both run into a lock that somebody holds, in this order: the first one stops in its middle, with what it has locked so far. */
  async #behind({ first, second }: Pair, scene: Scene, gate: Gate): Promise<void> {
    const open = await this.#gated.close(gate, scene);
    const tried: Promise<unknown>[] = [];
    try {
      for (const [operation, session] of [
        [first, this.#one],
        [second, this.#two],
      ] as const) {
        const running = operation.run(session.ask, scene);
        running.catch(() => undefined);
        tried.push(running);
        await this.#bench.untilSettledOrBlocked(session.pid, running);
      }
    } finally {
      await open();
    }
    const ends = await Promise.all(tried);
    for (const [index, operation] of [first, second].entries()) {
      if (ends[index] === 'held up') await operation.run(this.#bench.ask, scene);
    }
  }
}

/** What is in a result and in neither of the serial ones, by lines; all of it would be a page. */
function differences(found: string, expected: readonly string[]): string {
  const lines = found.split('\n');
  return expected
    .map((text, index) => {
      const others = text.split('\n');
      const here = lines.filter((line) => !others.includes(line));
      const there = others.filter((line) => !lines.includes(line));
      const which = index === 0 ? 'in order' : 'reversed';
      return `\n  against ${which}: found ${here.join(' ').slice(0, 600)}\n  missed ${there.join(' ').slice(0, 600)}`;
    })
    .join('');
}
