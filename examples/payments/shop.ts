import pg, { type ClientBase, type Pool } from 'pg';
import { type Order, OrderCancelledError, OutOfStockError } from './order.js';

// The shop's own tables and what is done to them.

/**
 * A reservation has no unique constraint on purpose. It is made exactly once because it commits together with the record of
 * its step; a constraint would only hide it if that were not so.
 */
const TABLES = `
  CREATE SCHEMA IF NOT EXISTS shop;
  CREATE TABLE IF NOT EXISTS shop.stock (item text PRIMARY KEY, on_hand integer NOT NULL CHECK (on_hand >= 0));
  CREATE TABLE IF NOT EXISTS shop.reservation (order_id text NOT NULL, item text NOT NULL, quantity integer NOT NULL);
  CREATE INDEX IF NOT EXISTS reservation_order ON shop.reservation (order_id);
  CREATE TABLE IF NOT EXISTS shop.customer_order (
    order_id text PRIMARY KEY,
    status   text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'confirmed', 'cancelled'))
  );`;

/** Creates the tables, and fills the shelves. */
export async function createShop(pool: Pool, stock: Readonly<Record<string, number>>): Promise<void> {
  await pool.query(TABLES);
  await pool.query('INSERT INTO shop.stock (item, on_hand) SELECT * FROM unnest($1::text[], $2::integer[])', [
    Object.keys(stock),
    Object.values(stock),
  ]);
}

/** Pieces on the shelves, by item. */
export async function stockOf(pool: Pool): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ item: string; on_hand: number }>('SELECT item, on_hand FROM shop.stock');
  return new Map(rows.map(({ item, on_hand }) => [item, on_hand]));
}

// The bodies of transactions: `client` is in the transaction that records the step.

export async function takeFromStock(client: ClientBase, { id, item, quantity }: Order): Promise<void> {
  const { rowCount } = await client.query(
    'UPDATE shop.stock SET on_hand = on_hand - $2 WHERE item = $1 AND on_hand >= $2',
    [item, quantity],
  );
  if (rowCount === 0) throw new OutOfStockError(`There are not ${String(quantity)} of "${item}" left.`);
  await client.query('INSERT INTO shop.reservation (order_id, item, quantity) VALUES ($1, $2, $3)', [
    id,
    item,
    quantity,
  ]);
}

/** Running it again changes nothing: what is put back is what it deletes. */
export async function putBack(client: Pick<ClientBase, 'query'>, { id }: Order): Promise<void> {
  await client.query(
    `WITH released AS (DELETE FROM shop.reservation WHERE order_id = $1 RETURNING item, quantity)
     UPDATE shop.stock s SET on_hand = s.on_hand + r.quantity
       FROM (SELECT item, sum(quantity) AS quantity FROM released GROUP BY item) r
      WHERE s.item = r.item`,
    [id],
  );
}

/** The point of no return. */
export async function confirmOrder(client: ClientBase, { id }: Order): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE shop.customer_order SET status = 'confirmed' WHERE order_id = $1 AND status = 'open'`,
    [id],
  );
  if (rowCount === 0) throw new OrderCancelledError(`Order ${id} was cancelled while it was being packed.`);
}

let pool: Pool | undefined;

/** The shop's connections outside of transactions of steps, of the database that `DATABASE_URL` names. */
export function shopDatabase(): Pool {
  if (pool === undefined) {
    pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 3 });
    // A server that restarts says so to idle connections, too; without a listener that would end the process.
    pool.on('error', () => undefined);
  }
  return pool;
}
