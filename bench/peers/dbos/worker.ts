import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

import { DBOS, type WorkflowHandle } from '@dbos-inc/dbos-sdk';

import type { StepMeter } from '../../closed-loop.js';
import type { LoadOrder } from '../../protocol.js';
import { databaseUrl, type HostedSubject, hostSubject } from '../../worker-host.js';

const meter: StepMeter = { steps: 0, startDelaysMs: [] };

/** Name of the queue of the order under way. */
let queueName = '';
let queues = 0;
/** What the package looks for work at, and for results, when it is not told otherwise. */
const DEFAULT_POLLING_MS = 1_000;
/** Waiting for the end of a drain is the benchmark's own affair: it is not to cost a second of the default interval. */
const DRAIN_POLLING_MS = 100;
/** How long a change of a queue takes to be seen by the process that serves it. */
const RECONCILED_MS = 1_500;

const trivialSteps = DBOS.registerWorkflow(
  async (steps: number): Promise<number> => {
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await DBOS.runStep(() => Promise.resolve(index), { name: 'trivial' });
      meter.steps++;
    }
    return sum;
  },
  { name: 'trivialSteps' },
);

const queuedSteps = DBOS.registerWorkflow(
  async (steps: number, enqueuedAt: number): Promise<number> => {
    meter.startDelaysMs.push(performance.now() - enqueuedAt);
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await DBOS.runStep(() => Promise.resolve(index), { name: 'trivial' });
      meter.steps++;
    }
    return sum;
  },
  { name: 'queuedSteps' },
);

await hostSubject(launch);

async function launch(): Promise<HostedSubject> {
  const poolSize = Number(process.env['BENCH_DBOS_POOL_SIZE']);
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: databaseUrl(),
    systemDatabasePoolSize: poolSize,
    logLevel: 'error',
    enableOTLP: false,
  });
  await DBOS.launch();

  const perform = async ({ work, steps, queue }: LoadOrder): Promise<unknown> => {
    const pollingIntervalMs = queue?.peerPollingMs ?? DEFAULT_POLLING_MS;
    switch (work) {
      case 'queued':
      case 'queued-remotely': {
        const handle = await DBOS.startWorkflow(queuedSteps, { queueName })(steps, performance.now());
        return handle.getResult({ pollingIntervalMs });
      }
      case 'drain': {
        const handles = await enqueueAll(queue?.batch ?? 0, poolSize, steps);
        // One query for all of them.
        return DBOS.waitAll(handles, { pollingIntervalMs: Math.min(pollingIntervalMs, DRAIN_POLLING_MS) });
      }
      default: {
        const handle = await DBOS.startWorkflow(trivialSteps)(steps);
        return handle.getResult();
      }
    }
  };
  return {
    about: `@dbos-inc/dbos-sdk ${installedVersion()}, pool of ${String(poolSize)}`,
    meter,
    prepare: async ({ queue }) => {
      if (queue === null) return () => Promise.resolve();
      await defineQueue(queue.concurrency, queue.peerPollingMs ?? DEFAULT_POLLING_MS);
      // While others are measured, it looks for nothing.
      return () => DBOS.deleteQueue(queueName);
    },
    perform,
    close: () => DBOS.shutdown(),
  };
}

async function defineQueue(concurrency: number | null, minPollingIntervalMs: number): Promise<void> {
  // A queue whose interval is shortened comes to it in steps, for ten seconds; a new one begins with its own.
  queueName = `bench-${String(queues++)}`;
  await DBOS.registerQueue(queueName, {
    ...(concurrency === null ? {} : { globalConcurrency: concurrency }),
    minPollingIntervalMs,
    onConflict: 'always_update',
  });
  await delay(RECONCILED_MS);
}

/** There is no call for many at once: as many calls at a time as there are connections. */
async function enqueueAll(count: number, lanes: number, steps: number): Promise<WorkflowHandle<number>[]> {
  const handles: WorkflowHandle<number>[] = [];
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun++ < count) {
      handles.push(await DBOS.startWorkflow(queuedSteps, { queueName })(steps, performance.now()));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return handles;
}

function installedVersion(): string {
  // The package does not export its package.json, so it is read where this package's lock file puts it.
  const path = new URL('./node_modules/@dbos-inc/dbos-sdk/package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
  return version;
}
