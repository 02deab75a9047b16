import type { Narrator } from '../../checkout/narrator.js';
import { layTable } from '../../checkout/text.js';
import { judgeOrders, judgeStock, type ToldOrder } from '../judge.js';
import type { LedgerEntry } from '../outside/ledger.js';
import type { Role } from './cast.js';
import type { Told } from './scenes.js';

const HEADING = ['order', 'customer was told', 'charged', 'given back', 'mails', 'what happened'];

/** Shows what became of each order, and holds it against the provider's ledger. Returns whether every rule holds. */
export function report(
  narrator: Narrator,
  cast: readonly Role[],
  told: ReadonlyMap<string, Told>,
  ledger: readonly LedgerEntry[],
  before: Readonly<Record<string, number>>,
  after: ReadonlyMap<string, number>,
): boolean {
  const rows = cast.map((role) => rowOf(role, told.get(role.order.id), ledger));
  for (const line of layTable(HEADING, rows)) narrator.say(line);
  const orders = cast.map(({ order: { id, item, quantity, cents } }): ToldOrder => {
    return { orderId: id, item, quantity, cents, told: told.get(id)?.outcome ?? { kind: 'open' } };
  });
  const counts = Object.entries(before).map(([item, pieces]) => ({
    item,
    before: pieces,
    after: after.get(item) ?? 0,
  }));
  const violations = [
    ...judgeOrders(ledger, orders).flatMap((ruling) => ruling.violations),
    ...judgeStock(counts, orders),
    ...orders.filter(({ told: { kind } }) => kind === 'open').map(({ orderId }) => `order ${orderId} has no outcome`),
  ];
  narrator.blank();
  if (violations.length > 0) {
    narrator.bad('FAILED:');
    narrator.sayEach(violations);
    return false;
  }
  narrator.good(`OK: by the provider's ledger, ${summary(ledger, orders)}.`);
  return true;
}

function rowOf({ order, story }: Role, told: Told | undefined, ledger: readonly LedgerEntry[]): readonly string[] {
  const own = (what: LedgerEntry['what']): readonly LedgerEntry[] =>
    ledger.filter((entry) => entry.what === what && entry.orderId === order.id);
  const times = (what: LedgerEntry['what']): string => (own(what).length === 0 ? '' : `${String(own(what).length)} ×`);
  const late = own('turned-away').length === 0 ? '' : ' (and turned away late)';
  return [
    order.id,
    told?.code ?? told?.outcome.kind ?? 'nothing',
    times('charged'),
    times('refunded'),
    times('notified'),
    `${story}${late}`,
  ];
}

function summary(ledger: readonly LedgerEntry[], orders: readonly ToldOrder[]): string {
  const charges = ledger.filter(({ what }) => what === 'charged').length;
  const refunds = ledger.filter(({ what }) => what === 'refunded').length;
  const confirmed = orders.filter(({ told }) => told.kind === 'confirmed').length;
  return (
    `${String(confirmed)} confirmed orders are paid once, ${String(orders.length - confirmed)} others not at all ` +
    `(${String(charges)} charges, ${String(refunds)} given back), and each confirmed one is announced under one event ID`
  );
}
