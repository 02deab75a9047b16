import { randomUUID } from 'node:crypto';
import type { ClientBase } from 'pg';
import { carrier } from '../../../examples/payments/carrier.js';
import { CardDeclinedError, Order, type Receipt } from '../../../examples/payments/order.js';
import { Orders } from '../../../examples/payments/orders.js';
import type { Charge } from '../../../examples/payments/outside/provider.js';
import { provider, PROVIDER_VARIABLE } from '../../../examples/payments/payment-provider.js';
import { confirmOrder, putBack, shopDatabase, takeFromStock } from '../../../examples/payments/shop.js';
import {
  defineWorkflow,
  NonRetryableError,
  onRollback,
  outbox,
  runStep,
  runTransaction,
  sleep,
  step,
  transaction,
  workflow,
  type WorkflowSource,
} from '../../../src/index.js';

/** Shops with one mistake each, as they are made. A judge has to find it. */
export const MUTANTS = [
  /** A charge that was not answered is made again, under another key: `charged-once`. */
  'key-per-attempt',
  /** Whoever takes over charges under a key of its own: `charged-once`. */
  'key-per-process',
  /** A charge that was not answered is taken for declined: `charged-for-nothing`. */
  'timeout-is-decline',
  /** Nothing is undone: `charged-for-nothing`, `stock`. */
  'no-compensation',
  /** The refund alone, and the door stays open for charges on their way: `charged-for-nothing`. */
  'no-close',
  /** The stock is changed in a transaction, and the step recorded in another: `stock`. */
  'reserve-apart',
  /** The mail goes out before the order is confirmed: `events`. */
  'mail-first',
  /** The mail is sent by the workflow's code, outside of the outbox: `events`. */
  'mail-apart',
] as const;

export type Mutant = (typeof MUTANTS)[number];

const PERSISTENT = { maxAttempts: 100, initialDelay: '200ms', maxDelay: '5s' } as const;
const PATIENCE = '1s';

/** The example's workflow with one mistake. */
export function mutatedOrders(mutant: Mutant): WorkflowSource {
  return defineWorkflow(
    'placeOrder',
    async (order: Order): Promise<Receipt> => {
      await reserve(mutant, order);
      if (closesDoor(mutant)) {
        onRollback(() => provider.close(order.id, step()), { name: 'close', retries: PERSISTENT, timeout: PATIENCE });
      }
      const charge = await chargeCard(mutant, order);
      await sleep(order.packingMs);
      if (mutant === 'mail-first') await outbox.add('order-confirmed', { orderId: order.id }, { key: order.id });
      const parcel = await runStep('ship', () => carrier.book(order));
      const receipt = { orderId: order.id, chargeId: charge.chargeId, parcel };
      if (mutant === 'mail-first' || mutant === 'mail-apart') {
        await runTransaction('confirm', () => confirmOrder(transaction<ClientBase>().client, order));
      } else await Orders.confirm(order, receipt);
      if (mutant === 'mail-apart') await sendMail(receipt);
      return receipt;
    },
    { input: Order, maxAttempts: 1_000 },
  );
}

/** Where it does not, the mistake would be made good by the provider. */
function closesDoor(mutant: Mutant): boolean {
  return mutant !== 'no-close' && mutant !== 'no-compensation' && mutant !== 'timeout-is-decline';
}

async function reserve(mutant: Mutant, order: Order): Promise<void> {
  if (mutant !== 'no-compensation') {
    onRollback(() => putBack(shopDatabase(), order), { name: 'release', retries: PERSISTENT });
  }
  if (mutant === 'reserve-apart') await runStep('reserve', () => takeAndCommit(order), { retries: PERSISTENT });
  else await Orders.reserve(order);
}

async function takeAndCommit(order: Order): Promise<void> {
  const connection = await shopDatabase().connect();
  try {
    await connection.query('BEGIN');
    await takeFromStock(connection, order);
    await connection.query('COMMIT');
  } catch (error) {
    await connection.query('ROLLBACK');
    throw error;
  } finally {
    connection.release();
  }
}

async function chargeCard(mutant: Mutant, order: Order): Promise<Charge> {
  switch (mutant) {
    case 'key-per-attempt':
      return chargeBlindly(order, () => randomUUID());
    case 'key-per-process':
      return chargeBlindly(order, () => `${step().idempotencyKey}-${String(workflow().epoch)}`);
    case 'timeout-is-decline':
      return runStep('charge', () => answeredOr(CardDeclinedError, () => provider.charge(order, call())));
    case 'no-compensation':
      return runStep('charge', () => answeredOr(Error, () => provider.charge(order, call())), { retries: PERSISTENT });
    default:
      return Orders.charge(order);
  }
}

/** Charges until there is an answer, and asks nobody. What it knows of is refunded. */
async function chargeBlindly(order: Order, key: () => string): Promise<Charge> {
  const known: Charge[] = [];
  const refund = (): Promise<unknown> => Promise.all(known.map((charge) => provider.refund(charge, step())));
  onRollback(refund, { name: 'refund', retries: PERSISTENT, timeout: PATIENCE });
  const charge = await runStep(
    'charge',
    () => answeredOr(Error, () => provider.charge(order, { ...call(), idempotencyKey: key() })),
    { retries: PERSISTENT },
  );
  known.push(charge);
  return charge;
}

/** With a limit of its own, so that Holdfast takes a timeout for an ordinary error. */
function call(): { readonly idempotencyKey: string; readonly signal: AbortSignal } {
  const { idempotencyKey, signal } = step();
  return { idempotencyKey, signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]) };
}

/** Takes no answer for an error of that kind. */
async function answeredOr<Answer>(Kind: new (message: string) => Error, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof NonRetryableError) throw error;
    throw new Kind('No answer.');
  }
}

async function sendMail(receipt: Receipt): Promise<void> {
  await fetch(`${process.env[PROVIDER_VARIABLE] ?? ''}/mail/order-confirmed`, {
    method: 'POST',
    headers: { 'idempotency-key': randomUUID() },
    body: JSON.stringify({ payload: receipt }),
    signal: AbortSignal.timeout(1_000),
  }).catch(() => undefined);
}
