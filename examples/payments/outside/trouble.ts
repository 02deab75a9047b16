import { createHash } from 'node:crypto';
import type { RequestKind } from './ledger.js';

/**
 * What can go wrong with a request. The caller of these knows the same afterwards: nothing.
 */
export type Trouble =
  /** Never arrives. No answer comes either. */
  | 'lost'
  /** Is carried out; then the connection is cut instead of an answer. */
  | 'reply-lost'
  /** Is carried out; then no answer comes, ever. */
  | 'no-reply'
  /** Answered with status 500, and not carried out. */
  | 'error'
  /** Answered with status 500, and carried out all the same. */
  | 'error-after'
  /** Is carried out, but so late that nobody waits any more; a lookup knows of it meanwhile. */
  | 'slow'
  /** Is on its way for so long that nobody waits any more; until it arrives, nobody knows of it. */
  | 'late';

const TROUBLES: readonly Trouble[] = ['lost', 'reply-lost', 'no-reply', 'error', 'error-after', 'slow', 'late'];

/** Decides what goes wrong. `nth` counts the requests of that kind for that order, from 1. */
export type Troubles = (request: RequestKind, orderId: string, nth: number) => Trouble | undefined;

/** What is to go wrong with an order's first requests of a kind, one after the other; the rest goes well. */
export type Script = Readonly<Record<string, Partial<Readonly<Record<RequestKind, readonly Trouble[]>>>>>;

export function scriptedTroubles(script: Script): Troubles {
  return (request, orderId, nth) => script[orderId]?.[request]?.[nth - 1];
}

/** That share of all requests, drawn by the seed, whatever the order in which they arrive. */
export function seededTroubles(seed: number, share: number): Troubles {
  return (request, orderId, nth) => {
    const draw = createHash('sha256')
      .update(JSON.stringify([seed, request, orderId, nth]))
      .digest();
    if (draw.readUInt32BE(0) / 2 ** 32 >= share) return undefined;
    return TROUBLES[draw.readUInt32BE(4) % TROUBLES.length];
  };
}
