import { LEASE } from './lease.js';
import { launchWorker } from '../launch-worker.js';

// A worker process of the demonstration. The database is in DATABASE_URL, the provider in PAYMENT_PROVIDER_URL.

// That steps fail is what is shown: the table at the end says so.
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
const holdfast = await launchWorker({ lease: LEASE, pollInterval: '200ms', logger: quiet });
process.send?.('ready');
process.on('message', () => {
  void holdfast.close({ drainMs: 0 }).then(() => {
    process.disconnect();
    process.exitCode = 0;
  });
});
// A worker of this demonstration does not outlive it.
process.on('disconnect', () => process.exit());
