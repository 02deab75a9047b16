import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, HoldfastClient, receive, type HoldfastOptions } from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const waits = defineWorkflow('waits', () => receive('never'));

/** Looks for work since the counting of calls was switched on. */
async function looks(): Promise<number> {
  await bed.sql.query('SELECT pg_stat_clear_snapshot()');
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT coalesce(sum(calls), 0)::int AS n FROM pg_stat_user_functions WHERE funcname = 'claim_work'`,
  );
  return rows[0]?.n ?? 0;
}

async function connections(): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return rows[0]?.n ?? 0;
}

test('C38 idle with 35 queues and with those who wait, a process gains no memory, connection or timer, however often it looks', async () => {
  await bed.sql.query(`ALTER DATABASE ${bed.database.name} SET track_functions = 'all'`);
  const maxConnections = 3;
  const common = { database: bed.database.url, pollInterval: 5, maxConnections, logger: silentLogger };
  const queues: HoldfastOptions['queues'] = Array.from({ length: 35 }, (_, n) => ({
    name: `q${String(n)}`,
    concurrency: 1,
  }));
  const holdfast = await bed.launch({ ...common, workflows: [waits], queues, lease: 300, suspendAfter: 0 });
  const client = await HoldfastClient.connect(common);
  const handle = await client.enqueue(waits, { queue: 'q0', workflowId: 'waits' });
  await waitUntil(async () => (await handle.status()) === 'SUSPENDED', 'it is unloaded');
  const leaving = new AbortController();
  const { signal } = leaving;
  const waiting = [holdfast, client].flatMap((each) => [
    each.handle('waits').result({ signal }),
    each.getEvent('waits', 'never', { signal }),
    each.readStream('waits', 'never', { signal })[Symbol.asyncIterator]().next(),
  ]);
  const settled = Promise.allSettled(waiting);

  const after = async (count: number): Promise<{ heap: number; timers: number; sockets: number }> => {
    const begun = await looks();
    await waitUntil(async () => (await looks()) - begun >= count, 'it has looked often enough');
    expect(await connections()).toBeLessThanOrEqual(2 * (maxConnections + 1));
    collectGarbage();
    const active = process.getActiveResourcesInfo();
    return {
      heap: process.memoryUsage().heapUsed,
      timers: active.filter((each) => each === 'Timeout').length,
      sockets: active.filter((each) => each === 'TCPSocketWrap').length,
    };
  };
  // By then what runs has been compiled: that takes a few hundred kilobytes once.
  const early = await after(120);
  const middle = await after(400);
  const late = await after(400);
  // A thing kept at each look, of a kilobyte or a timer, would be 400.
  expect(late.timers - early.timers).toBeLessThan(25);
  expect(late.sockets).toBeLessThanOrEqual(early.sockets + 2 * maxConnections);
  // What is compiled late is there once, what is kept grows all the time.
  expect(Math.min(middle.heap - early.heap, late.heap - middle.heap)).toBeLessThan(400 * 1_024);

  leaving.abort(new Error('seen enough'));
  expect((await settled).map(({ status }) => status)).toEqual(waiting.map(() => 'rejected'));
  await client.close();
  await holdfast.close();
});
