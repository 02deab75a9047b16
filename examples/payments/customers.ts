import type { Pool } from 'pg';
import type { HoldfastClient } from '../../src/index.js';
import type { Order } from './order.js';
import { Orders } from './orders.js';

// What the shop does when a customer comes to it. It needs no worker to be alive.

/** The order and its workflow are there together, or not at all: a shop that dies in between has promised nothing. */
export async function placeOrder(client: HoldfastClient, pool: Pool, order: Order): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query('BEGIN');
    await connection.query('INSERT INTO shop.customer_order (order_id) VALUES ($1)', [order.id]);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Holdfast calls it on the class
    await client.start(Orders.placeOrder, { workflowId: order.id, transaction: connection }, order);
    await connection.query('COMMIT');
  } catch (error) {
    await connection.query('ROLLBACK');
    throw error;
  } finally {
    connection.release();
  }
}

/**
 * Whether the order could still be cancelled is decided here, by one row: either this statement finds it open, or the
 * workflow's `confirm` did. What has been done for it is then undone by its workflow.
 */
export async function cancelOrder(client: HoldfastClient, pool: Pool, orderId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE shop.customer_order SET status = 'cancelled' WHERE order_id = $1 AND status = 'open'`,
    [orderId],
  );
  if (rowCount === 0) return false;
  // If this process dies before the next line, `confirm` finds the order cancelled, and the workflow undoes everything itself.
  await client.admin.cancel(orderId, { compensate: true, reason: 'cancelled by the customer' });
  return true;
}
