import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { ToldOrder, ToldOutcome } from '../../../examples/payments/judge.js';
import type { Receipt } from '../../../examples/payments/order.js';
import { cancelOrder, placeOrder } from '../../../examples/payments/customers.js';
import { type HoldfastClient, WorkflowCancelledError } from '../../../src/index.js';
import type { PaymentsOptions, PlannedOrder } from './plan.js';

/** How often the operator looks at what waits for a person. */
const ROUND_MS = 500;

/** The customers of the campaign: they place orders, change their minds, and remember what they were told. */
export class Shopper {
  /** Orders whose cancellation the shop has accepted. */
  cancellations = 0;
  readonly #client: HoldfastClient;
  readonly #pool: Pool;

  constructor(client: HoldfastClient, pool: Pool) {
    this.#client = client;
    this.#pool = pool;
  }

  /** Resolves when all orders are placed, and cancelled where they were to be. */
  async shop(plan: readonly PlannedOrder[]): Promise<void> {
    const beganAt = performance.now();
    await Promise.all(
      plan.map(async ({ order, placedAtMs, cancelledAfterMs }) => {
        await pause(Math.max(0, placedAtMs - (performance.now() - beganAt)));
        await placeOrder(this.#client, this.#pool, order);
        if (cancelledAfterMs === undefined) return;
        await pause(cancelledAfterMs);
        if (await cancelOrder(this.#client, this.#pool, order.id)) this.cancellations += 1;
      }),
    );
  }

  /** What each customer is told in the end. */
  async hear(plan: readonly PlannedOrder[], options: PaymentsOptions): Promise<readonly ToldOrder[]> {
    const gaveUp = AbortSignal.timeout(options.healMs);
    setMaxListeners(plan.length, gaveUp);
    return Promise.all(
      plan.map(async ({ order: { id, item, quantity, cents } }) => ({
        orderId: id,
        item,
        quantity,
        cents,
        told: await outcomeOf(this.#client, id, gaveUp),
      })),
    );
  }
}

async function outcomeOf(client: HoldfastClient, orderId: string, signal: AbortSignal): Promise<ToldOutcome> {
  try {
    const { chargeId } = await client.handle<Receipt>(orderId).result({ signal });
    return { kind: 'confirmed', chargeId };
  } catch (error) {
    if (signal.aborted) return { kind: 'open' };
    return { kind: error instanceof WorkflowCancelledError ? 'cancelled' : 'failed' };
  }
}

/**
 * A person who looks at what waits for one, and has it tried again, until it is stopped. Returns how often.
 */
export async function operate(client: HoldfastClient, signal: AbortSignal): Promise<number> {
  let resumed = 0;
  while (!signal.aborted) {
    const { items } = await client.admin.list({ attention: true });
    for (const { workflowId, status } of items) {
      if (status !== 'BLOCKED' && status !== 'DEAD_LETTER') continue;
      await client.admin.resume(workflowId);
      resumed += 1;
    }
    await pause(ROUND_MS);
  }
  return resumed;
}
