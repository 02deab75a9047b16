import type { Order } from './checkout.js';

/** Which order plays which part. With few orders some parts are not played. */
export interface Roles {
  /** Its worker is killed in the middle of its charge. */
  readonly killed: Order;
  /** Its worker is frozen in the middle of its charge, for longer than the lease. */
  readonly zombie: Order | undefined;
  readonly cancelled: Order | undefined;
  /** Start with the killed one, in the same worker. */
  readonly others: readonly Order[];
}

export function castRoles(orders: readonly [Order, ...Order[]]): Roles {
  const [killed, zombie, cancelled, ...others] = orders;
  return { killed, zombie, cancelled, others };
}
