import { compareBytes } from '../byte-order.js';

/** Where the claim before has stopped in one queue. */
export interface KeyTurn {
  /** The key that was served last; null: none. */
  readonly key: string | null;
  /** Where it stopped, having looked at enough. */
  readonly priority?: number;
  readonly from?: string | null;
}

/** Whose turn it is: what one claim hands to the next. */
export interface Turns {
  /** The queue that was served last. */
  readonly queue: string | null;
  readonly keys: Readonly<Record<string, KeyTurn>>;
}

export function parseTurns(text: string | null): Turns {
  return text === null ? { queue: null, keys: {} } : (JSON.parse(text) as Turns);
}

/** Names in their order, beginning after the given one, which comes last. */
export function inCircle(names: Iterable<string>, after: string | null): string[] {
  const sorted = [...new Set(names)].sort(compareBytes);
  if (after === null) return sorted;
  const first = sorted.findIndex((name) => compareBytes(name, after) > 0);
  return first === -1 ? sorted : [...sorted.slice(first), ...sorted.slice(0, first)];
}
