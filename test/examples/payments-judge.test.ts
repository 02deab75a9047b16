import { expect, test } from 'vitest';
import { judgeOrders, judgeStock, type Rule, type ToldOrder, type ToldOutcome } from '../../examples/payments/judge.js';
import type { LedgerEntry } from '../../examples/payments/outside/ledger.js';

function order(told: ToldOutcome, orderId = 'one'): ToldOrder {
  return { orderId, item: 'tea pot', quantity: 2, cents: 500, told };
}

function charged(chargeId = 'c', cents = 500, orderId = 'one'): LedgerEntry {
  return { what: 'charged', orderId, cents, chargeId };
}

function refunded(chargeId = 'c', cents = 500, orderId = 'one'): LedgerEntry {
  return { what: 'refunded', orderId, cents, chargeId, by: 'request' };
}

function notified(eventId = 'e', orderId = 'one'): LedgerEntry {
  return { what: 'notified', orderId, eventId };
}

const CONFIRMED: ToldOutcome = { kind: 'confirmed', chargeId: 'c' };
const FAILED: ToldOutcome = { kind: 'failed' };
const CANCELLED: ToldOutcome = { kind: 'cancelled' };
const OPEN: ToldOutcome = { kind: 'open' };

function broken(ledger: readonly LedgerEntry[], orders: readonly ToldOrder[]): readonly Rule[] {
  return judgeOrders(ledger, orders)
    .filter(({ violations }) => violations.length > 0)
    .map(({ rule }) => rule);
}

test.each<[what: string, ledger: LedgerEntry[], told: ToldOutcome]>([
  ['a confirmed order that was charged once', [charged(), notified()], CONFIRMED],
  ['one whose event came twice', [charged(), notified(), notified()], CONFIRMED],
  ['one that was charged twice, and given one back', [charged('d'), charged(), refunded('d'), notified()], CONFIRMED],
  ['a cancelled order that was never charged', [], CANCELLED],
  ['a failed order that was charged and given back', [charged(), refunded()], FAILED],
  ['an order that nobody knows the end of', [charged()], OPEN],
])('no rule is broken by %s', (_, ledger, told) => {
  expect(broken(ledger, [order(told)])).toEqual([]);
});

test.each<[what: string, ledger: LedgerEntry[], told: ToldOutcome, rules: Rule[]]>([
  ['charged twice', [charged(), charged('d'), notified()], CONFIRMED, ['charged-once', 'confirmed-and-paid']],
  ['charged twice, with no end', [charged(), charged('d')], OPEN, ['charged-once']],
  ['refunded twice', [charged(), refunded(), refunded()], CANCELLED, ['charged-once', 'charged-for-nothing']],
  ['charged and cancelled', [charged()], CANCELLED, ['charged-for-nothing']],
  ['charged and failed', [charged()], FAILED, ['charged-for-nothing']],
  ['given back too little', [charged(), refunded('c', 400)], FAILED, ['charged-for-nothing']],
  ['confirmed and not charged', [notified()], CONFIRMED, ['confirmed-and-paid']],
  ['confirmed for another price', [charged('c', 499), notified()], CONFIRMED, ['confirmed-and-paid']],
  ['confirmed by a charge that is not its own', [charged('d'), notified()], CONFIRMED, ['confirmed-and-paid']],
  ['confirmed and given back', [charged(), charged('d'), refunded(), notified()], CONFIRMED, ['confirmed-and-paid']],
  ['confirmed without an event', [charged()], CONFIRMED, ['events']],
  ['announced under two IDs', [charged(), notified(), notified('f')], CONFIRMED, ['events']],
  ['announced and cancelled', [notified()], CANCELLED, ['events']],
  ['announced and failed', [notified()], FAILED, ['events']],
])('an order that was %s is found', (_, ledger, told, rules) => {
  // What was done for another order is not put down to this one.
  const other = [charged('x', 500, 'two'), notified('y', 'two')];
  const orders = [order(told), order({ kind: 'confirmed', chargeId: 'x' }, 'two')];
  expect(broken([...ledger, ...other], orders)).toEqual(rules);
});

test('what is gone from the shelves is what confirmed orders took', () => {
  const orders = [order(CONFIRMED), order(CONFIRMED, 'two'), order(FAILED, 'three')];
  expect(judgeStock([{ item: 'tea pot', before: 10, after: 6 }], orders)).toEqual([]);
  expect(judgeStock([{ item: 'tea pot', before: 10, after: 4 }], orders)).toHaveLength(1);
  expect(judgeStock([{ item: 'tea pot', before: 10, after: 8 }], orders)).toHaveLength(1);
  expect(judgeStock([{ item: 'cup', before: 1, after: 1 }], orders)).toEqual([]);
});
