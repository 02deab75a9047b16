import type { SeededRandom } from '../support/seeded-random.js';
import { pauseUntil } from './arena.js';
import { later } from './crew.js';
import { type Arena, type Fault, FaultImpossible } from './fault.js';
import type { LedgerClient } from './ledger/ledger-client.js';

/** How long the turn of a fault is among others, in milliseconds, and how often another one has it at the same time. */
const SHORTEST_TURN_MS = 4_000;
const LONGEST_TURN_MS = 10_000;
const TWO_AT_ONCE = 0.5;

export interface Disturbance {
  readonly faults: readonly Fault[];
  readonly chaosMs: number;
  readonly random: SeededRandom;
  readonly ledger: LedgerClient;
}

export interface Hits {
  /** Hits that landed, by fault. */
  readonly hits: Readonly<Record<string, number>>;
  /** Faults that this machine cannot do, and why. */
  readonly impossible: Readonly<Record<string, string>>;
}

type MakeArena = (signal: AbortSignal, hit: (detail: string) => void) => Arena;

/** Runs one fault all the time, or several by turns, those first that have had the fewest hits. */
export async function disturb({ faults, chaosMs, random, ledger }: Disturbance, arenaOf: MakeArena): Promise<Hits> {
  const hits = new Map(faults.map(({ name }) => [name, 0]));
  const impossible = new Map<string, string>();
  const run = async (fault: Fault, signal: AbortSignal): Promise<void> => {
    const arena = arenaOf(signal, (detail) => {
      hits.set(fault.name, (hits.get(fault.name) ?? 0) + 1);
      ledger.note({ what: 'hit', fault: fault.name, detail });
    });
    try {
      await fault.run(arena);
    } catch (error) {
      if (!(error instanceof FaultImpossible)) throw error;
      impossible.set(fault.name, error.message);
      await pauseUntil(signal, chaosMs);
    }
  };
  const until = performance.now() + chaosMs;
  while (performance.now() < until) {
    const rest = until - performance.now();
    const possible = faults.filter(({ name }) => !impossible.has(name));
    if (possible.length === 0) await later(rest);
    const turnMs = faults.length === 1 ? rest : Math.min(rest, random.between(SHORTEST_TURN_MS, LONGEST_TURN_MS));
    const among = [...possible]
      .map((fault) => ({ fault, place: (hits.get(fault.name) ?? 0) * random.next() + random.next() }))
      .sort((a, b) => a.place - b.place)
      .slice(0, faults.length > 1 && random.next() < TWO_AT_ONCE ? 2 : 1);
    const over = new AbortController();
    const timer = setTimeout(() => {
      over.abort();
    }, turnMs);
    await Promise.all(among.map(({ fault }) => run(fault, over.signal)));
    clearTimeout(timer);
  }
  return { hits: Object.fromEntries(hits), impossible: Object.fromEntries(impossible) };
}
