import { Holdfast, type HoldfastOptions, webhook } from '../../src/index.js';
import { ORDER_ERRORS } from './order.js';
import { Orders } from './orders.js';
import { PROVIDER_VARIABLE } from './payment-provider.js';

/** A process that works on orders: those that are placed, and those that another worker left behind. */
export function launchWorker(options: Partial<HoldfastOptions> = {}): Promise<Holdfast> {
  const outside = process.env[PROVIDER_VARIABLE] ?? '';
  return Holdfast.launch({
    workflows: [Orders],
    errors: ORDER_ERRORS,
    outbox: {
      handlers: {
        'order-confirmed': webhook({
          url: `${outside}/mail/order-confirmed`,
          headers: { 'user-agent': `shop/${String(process.pid)}` },
          timeout: '1s',
        }),
      },
      // What a worker that died was about to deliver is delivered by another one after this and 15 s.
      timeout: '2s',
      retries: { maxAttempts: 100, initialDelay: '200ms', maxDelay: '5s' },
    },
    ...options,
  });
}
