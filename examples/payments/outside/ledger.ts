import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** What the outside world did, and nothing else: no line is written for a request that came to nothing. */
export type LedgerEntry =
  | { readonly what: 'charged'; readonly orderId: string; readonly cents: number; readonly chargeId: string }
  | { readonly what: 'declined'; readonly orderId: string }
  | {
      readonly what: 'refunded';
      readonly orderId: string;
      readonly cents: number;
      readonly chargeId: string;
      /** `request`: asked for by its ID. `close`: given back as the order was closed. */
      readonly by: 'request' | 'close';
    }
  /** No charge for this order is accepted from here on. */
  | { readonly what: 'closed'; readonly orderId: string }
  /** A charge that came after the order was closed. */
  | { readonly what: 'turned-away'; readonly orderId: string }
  /** The shop's mail service has this event; the same one may come several times. */
  | { readonly what: 'notified'; readonly orderId: string; readonly eventId: string }
  /** Something went wrong on the way: on purpose, see trouble.ts. */
  | { readonly what: 'trouble'; readonly orderId: string; readonly request: RequestKind; readonly trouble: string };

/** What the outside world is asked. */
export type RequestKind = 'charge' | 'lookup' | 'refund' | 'close' | 'notify';

/**
 * The provider's own books: a file that is on disk before anybody is answered. It belongs to a process that nobody kills, shares
 * nothing with the shop or its database, and is the only judge of what customers have paid.
 */
export class Ledger {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  /** Returns when the entry is on disk. */
  write(entry: LedgerEntry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
    fsyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}

export function readLedger(path: string): readonly LedgerEntry[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as LedgerEntry);
}
