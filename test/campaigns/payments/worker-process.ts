/** A worker of the campaign: the example's, in which it can be struck down at every point. */
import { launchWorker } from '../../../examples/payments/launch-worker.js';
import { PROVIDER_VARIABLE } from '../../../examples/payments/payment-provider.js';
import type { FromWorker, ToWorker, WorkerOptions } from './messages.js';
import { mutatedOrders } from './mutants.js';
import { Traps } from './traps.js';
import { silentLogger } from '../support/silent-logger.js';

const { database, executorId, leaseMs, provider, mutant } = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions;
process.env['DATABASE_URL'] = database;
process.env[PROVIDER_VARIABLE] = provider;

const traps = new Traps();
traps.install();
process.on('message', (message: ToWorker) => {
  traps.obey(message);
});
// Without the campaign nobody needs this process.
process.on('disconnect', () => process.exit(0));

await launchWorker({
  executorId,
  lease: leaseMs,
  maxConnections: 5,
  pollInterval: 200,
  logger: silentLogger,
  ...(mutant === undefined ? {} : { workflows: [mutatedOrders(mutant)] }),
});
process.send?.({ what: 'launched' } satisfies FromWorker);
