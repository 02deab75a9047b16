import type { LedgerEntry } from './outside/ledger.js';

/** What the shop told its customer in the end. `open`: nothing yet. */
export type ToldOutcome =
  | { readonly kind: 'confirmed'; readonly chargeId: string }
  | { readonly kind: 'failed' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'open' };

export interface ToldOrder {
  readonly orderId: string;
  readonly item: string;
  readonly quantity: number;
  readonly cents: number;
  readonly told: ToldOutcome;
}

/** One rule, and where it is broken. */
export interface Ruling {
  readonly rule: Rule;
  /** Sentences; none: the rule holds. */
  readonly violations: readonly string[];
}

export type Rule = 'charged-once' | 'charged-for-nothing' | 'confirmed-and-paid' | 'events';

/** What the outside world knows of one order. */
interface Account {
  readonly charges: readonly Extract<LedgerEntry, { what: 'charged' }>[];
  readonly refunds: readonly Extract<LedgerEntry, { what: 'refunded' }>[];
  readonly events: readonly Extract<LedgerEntry, { what: 'notified' }>[];
}

/**
 * Holds what customers were told against what the provider and the mail service wrote down. Looks neither at Holdfast's
 * tables nor at the shop's.
 */
export function judgeOrders(ledger: readonly LedgerEntry[], orders: readonly ToldOrder[]): readonly Ruling[] {
  const accounts = new Map(orders.map(({ orderId }) => [orderId, accountOf(ledger, orderId)]));
  const judged = (rule: Rule, judge: (order: ToldOrder, account: Account) => string | undefined): Ruling => ({
    rule,
    violations: orders.flatMap((order) => {
      const violation = judge(order, accounts.get(order.orderId) ?? { charges: [], refunds: [], events: [] });
      return violation === undefined ? [] : [`order ${order.orderId} ${violation}`];
    }),
  });
  return [
    judged('charged-once', chargedOnce),
    judged('charged-for-nothing', chargedForNothing),
    judged('confirmed-and-paid', confirmedAndPaid),
    judged('events', notifiedIfConfirmed),
  ];
}

function accountOf(ledger: readonly LedgerEntry[], orderId: string): Account {
  const own = ledger.filter((entry) => entry.orderId === orderId);
  return {
    charges: own.filter((entry) => entry.what === 'charged'),
    refunds: own.filter((entry) => entry.what === 'refunded'),
    events: own.filter((entry) => entry.what === 'notified'),
  };
}

/** What the customer has paid in the end, in cents. */
function paid({ charges, refunds }: Account): number {
  return sum(charges) - sum(refunds);
}

function sum(entries: readonly { readonly cents: number }[]): number {
  return entries.reduce((total, { cents }) => total + cents, 0);
}

/** Nobody pays twice, whatever became of the order, and nobody gets back more than was paid. */
function chargedOnce(order: ToldOrder, account: Account): string | undefined {
  const standing = account.charges.length - account.refunds.length;
  if (standing > 1) return `was charged ${String(standing)} times`;
  if (standing < 0) return `was refunded ${String(-standing)} times too often`;
  return undefined;
}

/** Nobody pays for an order that failed or was cancelled. */
function chargedForNothing(order: ToldOrder, account: Account): string | undefined {
  if (order.told.kind !== 'failed' && order.told.kind !== 'cancelled') return undefined;
  const cents = paid(account);
  return cents === 0 ? undefined : `is ${order.told.kind}, and the customer has paid ${String(cents)} cents`;
}

/** Who was told that the order is confirmed has paid its price, by the charge on the receipt. */
function confirmedAndPaid(order: ToldOrder, account: Account): string | undefined {
  const { told } = order;
  if (told.kind !== 'confirmed') return undefined;
  if (paid(account) !== order.cents) {
    return `is confirmed for ${String(order.cents)} cents, and the customer has paid ${String(paid(account))}`;
  }
  const isReal = account.charges.some(({ chargeId }) => chargeId === told.chargeId);
  const isRefunded = account.refunds.some(({ chargeId }) => chargeId === told.chargeId);
  return isReal && !isRefunded ? undefined : `has a receipt for ${told.chargeId}, which does not stand`;
}

/** The mail service hears of every confirmed order, always under one event ID, and of no other order. */
function notifiedIfConfirmed(order: ToldOrder, { events }: Account): string | undefined {
  const ids = new Set(events.map(({ eventId }) => eventId));
  if (order.told.kind === 'confirmed' && ids.size !== 1) {
    return `is confirmed, and the mail service has ${String(ids.size)} events of it`;
  }
  if ((order.told.kind === 'failed' || order.told.kind === 'cancelled') && ids.size > 0) {
    return `is ${order.told.kind}, and its customer got a confirmation by mail`;
  }
  return undefined;
}

/** The pieces of an item at the beginning and in the end. */
export interface StockCount {
  readonly item: string;
  readonly before: number;
  readonly after: number;
}

/** What is gone from the shelves is what confirmed orders took: each reservation happened once, and each release. */
export function judgeStock(counts: readonly StockCount[], orders: readonly ToldOrder[]): readonly string[] {
  return counts.flatMap(({ item, before, after }) => {
    const sold = orders
      .filter((order) => order.item === item && order.told.kind === 'confirmed')
      .reduce((total, { quantity }) => total + quantity, 0);
    if (before - after === sold) return [];
    return [`${String(before - after)} of "${item}" are gone, and ${String(sold)} were sold`];
  });
}
