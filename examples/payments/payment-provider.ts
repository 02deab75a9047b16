import { OutcomeUnknownError } from '../../src/index.js';
import { CardDeclinedError, type Order, OrderCancelledError } from './order.js';
import type { Charge, LookupAnswer } from './outside/provider.js';

// The shop's client of the payment provider. What matters here is what a failure *says*:
//
//   no connection     nothing was sent, so nothing has happened: an ordinary error, to be tried again
//   402               the provider has decided: CardDeclinedError, the order fails
//   anything else     a timeout, a lost connection, a 500: the card may have been charged or not: OutcomeUnknownError
//
// To take the third for the second loses the order of a customer who has paid. To take it for the first and to charge again
// under another key charges a customer twice.

/** Environment variable with the provider's address; set for workers. */
export const PROVIDER_VARIABLE = 'PAYMENT_PROVIDER_URL';

export interface Call {
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export const provider = {
  async charge({ id, cents, card }: Order, call: Call): Promise<Charge> {
    const answer = await request('POST', '/charges', call, { orderId: id, cents, card });
    switch (answer.status) {
      case 201:
        return (answer.body as { readonly charge: Charge }).charge;
      case 402:
        throw new CardDeclinedError(`The card of order ${id} was declined.`);
      case 409:
        throw new OrderCancelledError(`The provider takes no charge for order ${id} any more.`);
      default:
        throw new OutcomeUnknownError(`The provider answered a charge with status ${String(answer.status)}.`);
    }
  },

  /** What became of the charge that was sent under this key. */
  async lookUp(orderId: string, call: Call): Promise<LookupAnswer> {
    const answer = await request('GET', `/charges?order=${encodeURIComponent(orderId)}`, call);
    if (answer.status !== 200) throw new Error(`The provider answered a lookup with status ${String(answer.status)}.`);
    return answer.body as LookupAnswer;
  },

  /** Sent again under the same key, it gives back nothing more. */
  async refund({ orderId, chargeId }: Charge, call: Call): Promise<void> {
    const { status } = await request('POST', '/refunds', call, { orderId, chargeId });
    if (status !== 201) throw new Error(`The provider answered a refund with status ${String(status)}.`);
  },

  /** From here on the provider turns away charges for this order, and gives back one that came in meanwhile. */
  async close(orderId: string, call: Call): Promise<void> {
    const { status } = await request('POST', '/closed-orders', call, { orderId });
    if (status !== 200) throw new Error(`The provider answered the closing of an order with status ${String(status)}.`);
  },
};

async function request(
  method: string,
  path: string,
  { idempotencyKey, signal }: Call,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    const response = await fetch(`${process.env[PROVIDER_VARIABLE] ?? ''}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
        'user-agent': `shop/${String(process.pid)}`,
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
    });
    return { status: response.status, body: await response.json() };
  } catch (error) {
    if (isRefused(error)) throw new Error('The provider cannot be reached: nothing was sent.', { cause: error });
    throw new OutcomeUnknownError('The provider did not answer.', { cause: error });
  }
}

/** No connection came about. `fetch` says so in the cause. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}
