import type { Order } from './checkout.js';

/** What is going to happen to an order. */
export type Role = 'killed' | 'zombie' | 'cancelled' | 'undisturbed';

export interface CastOrder {
  readonly order: Order;
  readonly role: Role;
}

/** Windows has no way to freeze a process from outside. */
export const CAN_FREEZE = process.platform !== 'win32';

/** Gives out the roles in the order of the file, as far as the orders go. */
export function castOrders(orders: readonly Order[]): readonly CastOrder[] {
  const roles: Role[] = CAN_FREEZE ? ['killed', 'zombie', 'cancelled'] : ['killed', 'cancelled'];
  return orders.map((order, index) => ({ order, role: roles[index] ?? 'undisturbed' }));
}
