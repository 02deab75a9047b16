import { Holdfast } from '../../src/index.js';
import { Checkout, type Order } from './checkout.js';
import { LEASE } from './lease.js';
import type { FromWorker, ToWorker } from './messages.js';

// A worker: a process that runs Checkout workflows, those it is told to start and those that other workers left behind.
// In an application, this is all there is to it; the messages only serve the story that main.ts tells.

const holdfast = await Holdfast.launch({
  workflows: [Checkout],
  // The database is in DATABASE_URL.
  schema: process.env['CHECKOUT_SCHEMA'] ?? 'holdfast',
  lease: LEASE,
  pollInterval: '200ms',
});

async function start(order: Order): Promise<void> {
  const orderId = order.id;
  try {
    // The order's ID is the workflow's: an order that is sent twice is placed once.
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Holdfast calls it on the class
    const handle = await holdfast.start(Checkout.placeOrder, { workflowId: orderId }, order);
    tell({ kind: 'started', orderId });
    tell({ kind: 'returned', orderId, receipt: await handle.result() });
  } catch (error) {
    tell({ kind: 'threw', orderId, error: error instanceof Error ? error.name : String(error) });
  }
}

function tell(message: FromWorker): void {
  // Nobody may be left to tell.
  if (process.connected) process.send?.(message);
}

async function stop(): Promise<void> {
  await holdfast.close({ drainMs: 0 });
  process.disconnect();
}

process.on('message', (message: ToWorker) => {
  if (message.kind === 'start') void start(message.order);
  if (message.kind === 'stop') void stop();
});
// A worker of this story does not outlive it. Ctrl-C reaches every process of the terminal; the story stops its workers itself.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => undefined);
tell({ kind: 'ready' });
