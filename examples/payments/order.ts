import { z } from 'zod';
// An application of your own imports this from 'holdfast'.
import { NonRetryableError } from '../../src/index.js';

/** Checked before anything is written: an order that does not fit is refused, and no workflow is started. */
export const Order = z.strictObject({
  id: z.string().regex(/^[\w-]{1,64}$/),
  item: z.string().min(1).max(200),
  quantity: z.int().min(1).max(1_000),
  cents: z.int().min(1).max(100_000_000),
  card: z.string().min(1).max(64),
  address: z.string().min(1).max(200),
  /** How long it is being packed; it can be cancelled meanwhile. */
  packingMs: z.int().min(0).max(86_400_000),
});
export type Order = z.infer<typeof Order>;

export interface Receipt {
  readonly orderId: string;
  readonly chargeId: string;
  readonly parcel: string;
}

// Each of these ends an order for good: trying again would not help.

export class OutOfStockError extends NonRetryableError {
  override readonly code = 'OUT_OF_STOCK';
  override readonly name = 'OutOfStockError';
}

/** The provider said no. That is something else than not having said anything: see payment-provider.ts. */
export class CardDeclinedError extends NonRetryableError {
  override readonly code = 'CARD_DECLINED';
  override readonly name = 'CardDeclinedError';
}

export class UndeliverableError extends NonRetryableError {
  override readonly code = 'UNDELIVERABLE';
  override readonly name = 'UndeliverableError';
}

/** The customer was faster. */
export class OrderCancelledError extends NonRetryableError {
  override readonly code = 'ORDER_CANCELLED';
  override readonly name = 'OrderCancelledError';
}

/** What `launch` and `connect` take, so that these come back from the record as instances. */
export const ORDER_ERRORS = [OutOfStockError, CardDeclinedError, UndeliverableError, OrderCancelledError];
