import type { ClientBase } from 'pg';
// An application of your own imports these from 'holdfast'.
import {
  onRollback,
  outbox,
  type Reconciliation,
  sleep,
  step,
  Step,
  Transaction,
  transaction,
  Workflow,
} from '../../src/index.js';
import { carrier } from './carrier.js';
import { Order, type Receipt } from './order.js';
import type { Charge } from './outside/provider.js';
import { provider } from './payment-provider.js';
import { confirmOrder, putBack, shopDatabase, takeFromStock } from './shop.js';

/** How long the provider has to answer. */
const PATIENCE = '1s';
/** What must get through in the end is tried for a long time. */
const PERSISTENT = { maxAttempts: 100, initialDelay: '200ms', maxDelay: '5s' } as const;

/** From the shelf to the customer, and all the way back when something comes between. Each decision is explained in README.md. */
export class Orders {
  // The shelf is emptier exactly if the record says so: both are one commit.
  @Transaction()
  static async reserve(order: Order): Promise<void> {
    await takeFromStock(transaction<ClientBase>().client, order);
  }

  // A charge that was not answered is neither made again nor given up: the provider is asked what became of it.
  @Step({
    timeout: PATIENCE,
    retries: PERSISTENT,
    reconcile: 'findCharge',
    reconcileTimeout: PATIENCE,
    reconcileRetries: PERSISTENT,
    compensate: { run: 'refund', retries: PERSISTENT, timeout: PATIENCE },
  })
  static async charge(order: Order): Promise<Charge> {
    return provider.charge(order, step());
  }

  static async findCharge(order: Order): Promise<Reconciliation<Charge>> {
    const found = await provider.lookUp(order.id, step());
    switch (found.kind) {
      case 'charged':
        return { happened: true, result: found.charge };
      case 'pending':
        return { stillUnknown: true };
      case 'none':
      case 'declined':
      case 'closed':
        // Asked again under the same key, the provider gives the same answer, or charges for the first time.
        return { didNotHappen: true };
    }
  }

  static async refund(charge: Charge): Promise<void> {
    await provider.refund(charge, step());
  }

  @Step({ retries: { maxAttempts: 5 } })
  static async ship(order: Order): Promise<string> {
    return carrier.book(order);
  }

  // From here on the order stands, and the mail service will hear of it: both are one commit.
  @Transaction()
  static async confirm(order: Order, receipt: Receipt): Promise<void> {
    await confirmOrder(transaction<ClientBase>().client, order);
    await outbox.add('order-confirmed', receipt, { key: order.id });
  }

  // An order is not given up because many workers died of it.
  @Workflow({ input: Order, maxAttempts: 1_000 })
  static async placeOrder(order: Order): Promise<Receipt> {
    onRollback(() => putBack(shopDatabase(), order), { name: 'release', retries: PERSISTENT });
    await Orders.reserve(order);
    // Undone after the charge: whatever request of ours is still on its way then finds the door shut.
    onRollback(() => provider.close(order.id, step()), { name: 'close', retries: PERSISTENT, timeout: PATIENCE });
    const charge = await Orders.charge(order);
    await sleep(order.packingMs);
    const parcel = await Orders.ship(order);
    const receipt = { orderId: order.id, chargeId: charge.chargeId, parcel };
    await Orders.confirm(order, receipt);
    return receipt;
  }
}
