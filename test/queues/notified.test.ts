import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, HoldfastClient, type Holdfast, type WorkflowHandle } from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;
let own: pg.Client;
const echo = defineWorkflow('echo', (value: string) => Promise.resolve(value));

beforeAll(async () => {
  bed = await createBed();
  // As good as never: what is enqueued is started because it was told of, or not at all.
  holdfast = await bed.launch({
    workflows: [echo],
    queues: [{ name: 'q' }, { name: 'limited', concurrency: 1 }],
    pollInterval: '1h',
  });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
  own = new pg.Client({ connectionString: bed.database.url });
  await own.connect();
});
afterAll(async () => {
  await own.end();
  await client.close();
  await bed.close();
});

const ways: Record<string, (way: string) => Promise<WorkflowHandle>> = {
  start: (way) => client.start(echo, {}, way),
  enqueue: (way) => client.enqueue(echo, { queue: 'q' }, way),
  many: async (way) => {
    const [result] = await client.enqueueMany(echo, { queue: 'q' }, [{ args: [way] }]);
    return result?.ok === true ? result.handle : Promise.reject(new Error('Refused.'));
  },
  transaction: async (way) => {
    await own.query('BEGIN');
    const handle = await client.enqueue(echo, { queue: 'q', transaction: own }, way);
    await own.query('COMMIT');
    return handle;
  },
  'by SQL': async (way) => {
    await own.query(`SELECT holdfast.enqueue_workflow('echo', jsonb_build_array($1::text), 'q', $1)`, [way]);
    return client.handle(way);
  },
  resumed: async (way) => {
    const handle = await client.enqueue(echo, { queue: 'q', delay: '1h' }, way);
    await handle.cancel();
    await client.admin.resume(handle.workflowId);
    return handle;
  },
  'queue resumed': async (way) => {
    await client.queues.pause('limited');
    const handle = await client.enqueue(echo, { queue: 'limited' }, way);
    await client.queues.resume('limited');
    return handle;
  },
  'behind another one': async (way) => {
    await client.enqueue(echo, { queue: 'limited' }, 'first');
    return client.enqueue(echo, { queue: 'limited' }, way);
  },
};

test.each(Object.entries(ways))('an executor that does not poll starts what another process enqueues: %s', async (way, enqueue) => {
  expect(await (await enqueue(way)).result()).toBe(way);
}); // prettier-ignore

test('a thousand that are enqueued at once are stored by few statements and told by few notifications', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const remote = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  const stored = proxy.arm({ do: 'delay', delayMs: 0 }, /enqueue_batch/, { times: Infinity });
  let told = 0;
  bed.sql.on('notification', () => (told += 1));
  await bed.sql.query('LISTEN "holdfast.work"');
  const begun = performance.now();
  const alone = await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => remote.enqueue(echo, { queue: 'q' }, String(n))),
  );
  expect(stored.hits).toBeLessThan(100);
  const before = stored.hits;
  const together = await remote.enqueueMany(
    echo,
    { queue: 'q' },
    Array.from({ length: 1_000 }, (_, n) => ({ args: [String(n)] })),
  );
  // Five hundred rows a statement.
  expect(stored.hits - before).toBe(2);
  const handles = [...alone, ...together.flatMap((result) => (result.ok ? [result.handle] : []))];
  expect(await Promise.all(handles.map((handle) => handle.result()))).toHaveLength(2_000);
  await waitUntil(() => told > 0, 'it is told');
  expect(told).toBeLessThan((performance.now() - begun) / 10 + 2);
  await bed.sql.query('UNLISTEN *');
  stored.disarm();
  await remote.close();
  await proxy.close();
  expect(holdfast.health().state).toBe('running');
});

test('who has ended too many to name them asks for nothing when it is told so itself, and others are told', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  let door = gate();
  const gated = defineWorkflow('gated', () => door.opened);
  const own = await bed.launch({
    workflows: [gated],
    database: proxy.connectionString(bed.database.url),
    pollInterval: '1h',
  });
  const told: string[] = [];
  bed.sql.on('notification', ({ payload }) => told.push(payload ?? ''));
  await bed.sql.query('LISTEN "holdfast.outcome"');
  // It listens when it has started what only a notification tells it of; beginning to, it asks.
  door.open();
  await (await client.enqueue(gated, {})).result();
  const asked = proxy.arm({ do: 'delay', delayMs: 0 }, /read_outcomes/, { times: Infinity });
  for (let round = 0; !told.some((payload) => !payload.startsWith('[')); round++) {
    door = gate();
    const items = Array.from({ length: 100 }, (_, n) => ({
      args: [] as [],
      workflowId: `${String(round)}-${String(n)}-`.padEnd(500, 'x'),
    }));
    const results = (await own.enqueueMany(gated, {}, items)).map((one) =>
      one.ok ? one.handle.result() : Promise.reject(one.error),
    );
    door.open();
    await Promise.all(results);
  }
  const other = await client.handle('0-0-'.padEnd(500, 'x')).result();
  expect(other).toBeUndefined();
  expect(asked.hits).toBe(0);
  await bed.sql.query('UNLISTEN *');
  await own.close();
  await proxy.close();
});
