import type { Order } from '../../../examples/payments/order.js';
import { SeededRandom } from '../support/seeded-random.js';

export interface PaymentsOptions {
  readonly workers: number;
  readonly orders: number;
  /** How long workers are killed and stopped, and orders placed. */
  readonly chaosMs: number;
  /** How long what is left may take once everybody is well again. */
  readonly healMs: number;
  readonly seed: number;
  readonly leaseMs: number;
  /** Mean time between two kills or pauses. */
  readonly strikeMs: number;
  /** So many traps are set at once, at points that were hit least; the first one that is stepped into strikes. */
  readonly traps: number;
  /** Share of the requests to the outside world with which something goes wrong. */
  readonly troubleShare: number;
}

/** One customer. */
export interface PlannedOrder {
  readonly order: Order;
  /** When it is placed, in milliseconds from the beginning. */
  readonly placedAtMs: number;
  /** How long after that it is cancelled; undefined: never. */
  readonly cancelledAfterMs: number | undefined;
}

/** More than the orders of an item can ask for, but of the last one. */
export const STOCK: Readonly<Record<string, number>> = { 'tea pot': 1_000_000, cup: 1_000_000, 'last samovars': 5 };

const DECLINED_SHARE = 0.08;
const UNDELIVERABLE_SHARE = 0.08;
const RARE_SHARE = 0.05;
const CANCELLED_SHARE = 0.35;
const LONGEST_PACKING_MS = 1_500;
/** From the placing: some are cancelled before they are charged, some while they are packed, some too late. */
const LATEST_CANCEL_MS = 3_000;

export function planOrders({ orders, chaosMs, seed }: PaymentsOptions): readonly PlannedOrder[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: orders }, (_, index): PlannedOrder => {
    const isCancelled = random.next() < CANCELLED_SHARE;
    return {
      order: {
        id: `order-${String(index)}`,
        item: random.next() < RARE_SHARE ? 'last samovars' : (random.pick(['tea pot', 'cup']) ?? 'cup'),
        quantity: Math.ceil(random.between(0, 3)),
        cents: Math.ceil(random.between(100, 100_000)),
        card: random.next() < DECLINED_SHARE ? 'card-declined' : 'card-1',
        address: random.next() < UNDELIVERABLE_SHARE ? 'The Moon' : 'Harbour Street 1',
        packingMs: Math.round(random.between(100, LONGEST_PACKING_MS)),
      },
      placedAtMs: (index / orders) * chaosMs,
      cancelledAfterMs: isCancelled ? random.between(0, LATEST_CANCEL_MS) : undefined,
    };
  });
}
