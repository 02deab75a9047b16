import { randomUUID } from 'node:crypto';
import type { Ledger } from './ledger.js';

export interface ChargeRequest {
  readonly orderId: string;
  readonly cents: number;
  /** The provider declines `card-declined`. */
  readonly card: string;
}

export interface Charge {
  readonly chargeId: string;
  readonly orderId: string;
  readonly cents: number;
}

/** What became of a charge. Kept under the idempotency key, and the answer to every further request with that key. */
export type ChargeAnswer =
  { readonly kind: 'charged'; readonly charge: Charge } | { readonly kind: 'declined' } | { readonly kind: 'closed' };

/** What a lookup finds under a key. `pending`: a request with it is being carried out. */
export type LookupAnswer = { readonly kind: 'none' } | { readonly kind: 'pending' } | ChargeAnswer;

/**
 * A payment provider as they are: it charges again whoever asks again under another key, and it knows orders only as a
 * reference that comes with the charge.
 */
export class PaymentProvider {
  readonly #ledger: Ledger;
  readonly #answers = new Map<string, ChargeAnswer>();
  readonly #pending = new Set<string>();
  readonly #charges = new Map<string, Charge>();
  /** IDs of charges that were given back. */
  readonly #refunded = new Set<string>();
  readonly #refunds = new Map<string, string>();
  readonly #closed = new Set<string>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** The same key: the same charge. Another key: another charge. */
  charge(key: string, request: ChargeRequest): ChargeAnswer {
    const before = this.#answers.get(key);
    if (before !== undefined) return before;
    const answer = this.#decide(request);
    this.#answers.set(key, answer);
    return answer;
  }

  lookup(key: string): LookupAnswer {
    const answer = this.#answers.get(key);
    if (answer !== undefined) return answer;
    return { kind: this.#pending.has(key) ? 'pending' : 'none' };
  }

  /** A charge under this key has come, and is about to be carried out: until what this returns is called, a lookup says so. */
  expect(key: string): () => void {
    this.#pending.add(key);
    return () => this.#pending.delete(key);
  }

  /**
   * Gives a charge back. The same key: the same refund. Another key: another refund.
   * @returns undefined for a charge that there is not.
   */
  refund(key: string, chargeId: string): string | undefined {
    const before = this.#refunds.get(key);
    if (before !== undefined) return before;
    const charge = this.#charges.get(chargeId);
    if (charge === undefined) return undefined;
    const refundId = `refund-${randomUUID()}`;
    this.#giveBack(charge, 'request');
    this.#refunds.set(key, refundId);
    return refundId;
  }

  /**
   * Closes an order that will not be paid: charges that arrive later are turned away, and one that was made and not given back is
   * given back. For merchants who do not know what is still on its way.
   */
  close(orderId: string): void {
    if (this.#closed.has(orderId)) return;
    this.#closed.add(orderId);
    this.#ledger.write({ what: 'closed', orderId });
    for (const charge of this.#charges.values()) {
      if (charge.orderId === orderId && !this.#refunded.has(charge.chargeId)) this.#giveBack(charge, 'close');
    }
  }

  #decide({ orderId, cents, card }: ChargeRequest): ChargeAnswer {
    if (this.#closed.has(orderId)) {
      this.#ledger.write({ what: 'turned-away', orderId });
      return { kind: 'closed' };
    }
    if (card === 'card-declined') {
      this.#ledger.write({ what: 'declined', orderId });
      return { kind: 'declined' };
    }
    const charge: Charge = { chargeId: `charge-${randomUUID()}`, orderId, cents };
    this.#ledger.write({ what: 'charged', orderId, cents, chargeId: charge.chargeId });
    this.#charges.set(charge.chargeId, charge);
    return { kind: 'charged', charge };
  }

  #giveBack({ orderId, cents, chargeId }: Charge, by: 'request' | 'close'): void {
    this.#ledger.write({ what: 'refunded', orderId, cents, chargeId, by });
    this.#refunded.add(chargeId);
  }
}
