import type { Order } from '../order.js';
import type { Script } from '../outside/trouble.js';

/** The orders of the demonstration, each with what happens to it. */
export interface Role {
  readonly order: Order;
  readonly story: string;
}

const COMMON = { item: 'tea pot', quantity: 1, card: 'card-1', address: 'Harbour Street 1', packingMs: 300 };

function role(id: string, cents: number, story: string, changes: Partial<Order> = {}): Role {
  return { order: { ...COMMON, id, cents, ...changes }, story };
}

export const STOCK: Readonly<Record<string, number>> = { 'tea pot': 100, samovar: 0 };

/** Orders that the demonstration does something to. */
export const KILLED = role('A-06', 6_600, 'its worker is killed while the card is charged');
export const CANCELLED = role('A-07', 7_700, 'cancelled while it is packed; the reply to the refund is lost', {
  packingMs: 86_400_000,
});
export const OVERTAKEN = role('A-08', 8_800, 'cancelled while the charge is still on its way');

export const CAST: readonly Role[] = [
  role('A-01', 1_100, 'nothing goes wrong'),
  role('A-02', 2_200, 'the provider declines the card', { card: 'card-declined' }),
  role('A-03', 3_300, 'charged, and the reply is lost'),
  role('A-04', 4_400, 'the charge never arrives; no answer comes'),
  role('A-05', 5_500, 'charged, and answered with status 500'),
  KILLED,
  CANCELLED,
  OVERTAKEN,
  role('A-09', 9_900, 'cannot be delivered', { address: 'The Moon' }),
  role('A-10', 1_010, 'out of stock', { item: 'samovar' }),
  role('A-11', 1_111, 'the mail service gets the event, and its reply is lost'),
  role('A-12', 1_212, 'charged so late that nobody waits any more'),
];

export const TROUBLES: Script = {
  'A-03': { charge: ['reply-lost'] },
  'A-04': { charge: ['lost'] },
  'A-05': { charge: ['error-after'] },
  'A-07': { refund: ['reply-lost'] },
  'A-11': { notify: ['reply-lost'] },
  'A-12': { charge: ['slow'] },
};
