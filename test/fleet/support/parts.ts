import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { openDriver } from '../../../src/drivers/open-driver.js';
import { Arrivals } from '../../../src/engine/arrivals.js';
import { Catalog, type WorkflowSource } from '../../../src/engine/catalog.js';
import { Engine } from '../../../src/engine/engine.js';
import { Handle, type HandleHost } from '../../../src/engine/handle.js';
import { OutcomeWaiter } from '../../../src/engine/outcome-waiter.js';
import { StreamWatcher } from '../../../src/engine/stream-watcher.js';
import { Executor } from '../../../src/fleet/executor.js';
import type { RequeuePolicy } from '../../../src/fleet/requeues.js';
import { MaxAttemptsExceededError, WorkflowStuckError } from '../../../src/index.js';
import { systemRuntime } from '../../../src/runtime/system-runtime.js';
import { PostgresStore } from '../../../src/store/postgres/postgres-store.js';
import { ErrorRegistry, ValueSerializer } from '../../../src/values/index.js';
import { observe, type Observer } from '../../store/fixtures/observed-driver.js';
import { defaultSchema } from '../../support/conditions.js';
import { silentLogger } from '../../support/launch.js';

/** What `Holdfast.launch` puts together, with a policy for requeues and a look at each statement before it is sent. */
export async function launchParts(
  databaseUrl: string,
  options: {
    workflows: readonly WorkflowSource[];
    requeues: RequeuePolicy;
    observer: Observer;
    leaseMs?: number;
    afterStart?: () => Promise<void>;
  },
): Promise<{ engine: Engine; result(workflowId: string): Promise<unknown> }> {
  const driver = observe(await openDriver(databaseUrl), options.observer);
  const serializer = new ValueSerializer({ codecs: [], errors: new ErrorRegistry([WorkflowStuckError]) });
  const store = new PostgresStore({ driver, schema: defaultSchema(), notifications: false });
  const { afterStart } = options;
  if (afterStart !== undefined) {
    const start = store.start.bind(store);
    store.start = async (request) => {
      const answer = await start(request);
      await afterStart();
      return answer;
    };
  }
  const waiter = new OutcomeWaiter(store, 20, systemRuntime);
  const arrivals = new Arrivals(store, 20, systemRuntime);
  const executor = new Executor({
    runtime: systemRuntime,
    store,
    logger: silentLogger,
    executorId: randomUUID(),
    appVersion: '',
    leaseMs: options.leaseMs ?? 600_000,
    // The ordinary claim would not know how often a workflow was requeued.
    pollMs: 600_000,
    maxConcurrent: 100,
    suspendAfterMs: 5_000,
    deadLetterError: await serializer.encodeError(new MaxAttemptsExceededError('dead')),
    stuckError: await serializer.encodeError(new WorkflowStuckError('stuck')),
    stalledError: await serializer.encodeError(new WorkflowStuckError('stalled')),
    requeues: options.requeues,
    onSuperseded: () => undefined,
    onReturned: () => undefined,
  });
  const handles: HandleHost = {
    serializer,
    streams: store.streams,
    streamWatcher: new StreamWatcher(store.streams, 20, systemRuntime),
    waitForResult: (workflowId) => waiter.wait(workflowId, { runsHere: false }),
    statusOf: () => Promise.reject(new Error('not in this test')),
    cancel: () => Promise.reject(new Error('not in this test')),
    messaging: {
      send: () => Promise.reject(new Error('not in this test')),
      getEvent: () => Promise.reject(new Error('not in this test')),
      query: () => Promise.reject(new Error('not in this test')),
      update: () => Promise.reject(new Error('not in this test')),
    },
  };
  const engine = new Engine({
    runtime: systemRuntime,
    store,
    serializer,
    logger: silentLogger,
    catalog: new Catalog(options.workflows),
    executor,
    waiter,
    arrivals,
    handleOf: (workflowId) => new Handle(handles, workflowId),
  });
  await executor.register();
  executor.run(engine);
  onTestFinished(async () => {
    await executor.stopClaiming(0);
    await engine.giveBackAll();
    await executor.deregister();
    await store.close();
    waiter.close();
    arrivals.close();
    await driver.close();
  });
  return { engine, result: (workflowId) => new Handle(handles, workflowId).result() };
}
