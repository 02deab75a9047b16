import { z } from 'zod';
// An application of your own imports this from 'holdfast'.
import { sleep, step, Step, workflow, Workflow } from '../../src/index.js';
import { carrier, payments, warehouse } from './outside-world.js';

/** What a workflow ID can be made of: PostgreSQL stores no NUL, and half of a surrogate pair is no character. */
const OrderId = z
  .string()
  .min(1)
  .max(64)
  .refine((id) => !/\0|\p{Surrogate}/u.test(id), { error: 'must not contain NUL or half of a surrogate pair' });

/** Checked before anything is written: an order that does not fit is refused, and no workflow is started. */
export const Order = z.strictObject({
  id: OrderId,
  item: z.string().min(1).max(200),
  quantity: z.int().min(1).max(1_000),
  cents: z.int().min(1).max(100_000_000),
});
export type Order = z.infer<typeof Order>;

export interface Receipt {
  readonly orderId: string;
  readonly reservation: string;
  readonly charge: string;
  readonly parcel: string;
}

const PACKING_TIME = '2s';

/** Takes an order from the shelf to the door. Whatever happens to the process meanwhile, each step's result counts once. */
export class Checkout {
  @Step({ retries: { maxAttempts: 5, initialDelay: '100ms' }, timeout: '10s' })
  static async reserve(order: Order): Promise<string> {
    return warehouse.reserve(order.item, order.quantity, { idempotencyKey: step().idempotencyKey });
  }

  // A step whose process dies in the middle runs again. The key is the same then, so that the customer pays once.
  @Step()
  static async charge(order: Order): Promise<string> {
    return payments.charge(order.cents, { idempotencyKey: step().idempotencyKey });
  }

  // The epoch grows with every takeover: with it, the carrier can refuse an order from a process that was replaced.
  @Step()
  static async ship(reservation: string): Promise<string> {
    return carrier.ship(reservation, { fencingToken: workflow().epoch });
  }

  @Workflow({ input: Order })
  static async placeOrder(order: Order): Promise<Receipt> {
    const reservation = await Checkout.reserve(order);
    const charge = await Checkout.charge(order);
    await sleep(PACKING_TIME);
    const parcel = await Checkout.ship(reservation);
    return { orderId: order.id, reservation, charge, parcel };
  }
}
