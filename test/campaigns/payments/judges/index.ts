import { judgeOrders, judgeStock } from '../../../../examples/payments/judge.js';
import { verdict, type Verdict } from '../../support/verdict.js';
import type { Evidence } from '../campaign.js';
import { STOCK } from '../plan.js';
import { judgeSubstance } from './substance.js';

/** Whether anything went wrong, as the outside world and the customers see it. */
export function judgePayments(evidence: Evidence): readonly Verdict[] {
  return [judgeSubstance(evidence), judgeEnds(evidence), ...judgeMoney(evidence), judgeShelves(evidence)];
}

/** Every customer was told something within the time. */
function judgeEnds({ orders, resumed }: Evidence): Verdict {
  const open = orders.filter(({ told }) => told.kind === 'open');
  const kinds = ['confirmed', 'failed', 'cancelled'].map(
    (kind) => `${String(orders.filter(({ told }) => told.kind === kind).length)} ${kind}`,
  );
  return verdict(
    'ends',
    open.map(({ orderId }) => `order ${orderId} has no outcome`),
    `${String(orders.length)} orders: ${kinds.join(', ')}; ${String(resumed)} resumed by a person`,
  );
}

function judgeMoney({ ledger, orders }: Evidence): readonly Verdict[] {
  const entries = (what: string): string => String(ledger.filter((entry) => entry.what === what).length);
  const byClose = ledger.filter((entry) => entry.what === 'refunded' && entry.by === 'close').length;
  const numbers: Readonly<Record<string, string>> = {
    'charged-once': `${entries('charged')} charges, ${entries('refunded')} refunds`,
    'charged-for-nothing':
      `${entries('closed')} orders closed, ${String(byClose)} late charges given back with that, ` +
      `${entries('turned-away')} turned away after it`,
    'confirmed-and-paid': `${entries('declined')} declined`,
    events: `${entries('notified')} deliveries`,
  };
  return judgeOrders(ledger, orders).map(({ rule, violations }) => verdict(rule, violations, numbers[rule] ?? ''));
}

function judgeShelves({ stock, orders }: Evidence): Verdict {
  const counts = Object.entries(STOCK).map(([item, before]) => ({ item, before, after: stock.get(item) ?? 0 }));
  const gone = counts.reduce((sum, { before, after }) => sum + before - after, 0);
  return verdict('stock', judgeStock(counts, orders), `${String(gone)} pieces are gone from the shelves`);
}
