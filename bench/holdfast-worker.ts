import { existsSync } from 'node:fs';

import pg, { type PoolClient } from 'pg';
import type * as Api from '../src/index.js';
import type { StepMeter } from './closed-loop.js';
import type { LoadOrder } from './protocol.js';
import { databaseUrl, type HostedSubject, hostSubject } from './worker-host.js';

// What users run: the compiled package. The loader that runs this file wraps every closure it compiles to keep its name,
// which the sources would pay for at each step, and the peer, which comes compiled, would not.
const PACKAGE = new URL('../dist/index.js', import.meta.url);
if (!existsSync(PACKAGE)) throw new Error('The package is not built: npm run build.');
const { Holdfast, HoldfastClient, Step, Transaction, transaction, Workflow } = (await import(
  PACKAGE.href
)) as typeof Api;

const meter: StepMeter = { steps: 0, startDelaysMs: [] };

const QUEUE = 'bench';

class Bench {
  @Step()
  static trivial(index: number): Promise<number> {
    return Promise.resolve(index);
  }

  @Transaction()
  static async insert(index: number): Promise<number> {
    await transaction<PoolClient>().client.query({
      name: 'floor',
      text: 'INSERT INTO public.floor (value) VALUES ($1)',
      values: [String(index)],
    });
    return index;
  }

  @Workflow()
  static async transactions(steps: number): Promise<number> {
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await Bench.insert(index);
      meter.steps++;
    }
    return sum;
  }

  @Workflow()
  static async trivialSteps(steps: number): Promise<number> {
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await Bench.trivial(index);
      meter.steps++;
    }
    return sum;
  }

  @Workflow()
  static async queuedSteps(steps: number, enqueuedAt: number): Promise<number> {
    meter.startDelaysMs.push(performance.now() - enqueuedAt);
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await Bench.trivial(index);
      meter.steps++;
    }
    return sum;
  }
}

await hostSubject(launch);

async function createBusinessTable(): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await client.query(
    'CREATE TABLE public.floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value text NOT NULL)',
  );
  await client.end();
}

async function launch(): Promise<HostedSubject> {
  await createBusinessTable();
  const holdfast = await Holdfast.launch({ workflows: [Bench], database: databaseUrl() });
  // Connections and notifications of its own: nothing passes between the two but through the database.
  const client = await HoldfastClient.connect({ database: databaseUrl() });
  /* eslint-disable @typescript-eslint/unbound-method -- they name the workflows and are not called here */
  const perform = async ({ work, steps, queue }: LoadOrder): Promise<unknown> => {
    switch (work) {
      case 'queued': {
        const handle = await holdfast.enqueue(Bench.queuedSteps, { queue: QUEUE }, steps, performance.now());
        return handle.result();
      }
      case 'queued-remotely': {
        const handle = await client.enqueue(Bench.queuedSteps, { queue: QUEUE }, steps, performance.now());
        return handle.result();
      }
      case 'drain': {
        const items = Array.from({ length: queue?.batch ?? 0 }, () => ({
          args: [steps, performance.now()] as [number, number],
        }));
        const enqueued = await holdfast.enqueueMany(Bench.queuedSteps, { queue: QUEUE }, items);
        return Promise.all(enqueued.map((one) => (one.ok ? one.handle.result() : Promise.reject(one.error))));
      }
      case 'transaction': {
        const handle = await holdfast.start(Bench.transactions, {}, steps);
        return handle.result();
      }
      default: {
        const handle = await holdfast.start(Bench.trivialSteps, {}, steps);
        return handle.result();
      }
    }
  };
  /* eslint-enable @typescript-eslint/unbound-method */
  return {
    about: 'holdfast, this working tree, defaults',
    meter,
    prepare: async ({ queue }) => {
      const concurrency = queue?.concurrency ?? null;
      await holdfast.queues.define({ name: QUEUE, ...(concurrency === null ? {} : { concurrency }) });
      return () => Promise.resolve();
    },
    perform,
    close: async () => {
      await client.close();
      await holdfast.close();
    },
  };
}
