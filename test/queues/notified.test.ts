import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, HoldfastClient, type Holdfast, type WorkflowHandle } from '../../src/index.js';
import { createPgDriver } from '../../src/drivers/pg-driver.js';
import { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
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

test('who tells of more outcomes than can be named does not look for all of them itself; others are told to', async () => {
  // Nobody else uses these channels, and nothing of the schema is needed.
  const schema = 'apart';
  const driver = await createPgDriver({ connectionString: bed.database.url });
  const store = new PostgresStore({ driver, schema, notifications: true });
  const ignored = (): void => undefined;
  const heard: (readonly string[] | null)[] = [];
  let listens = false;
  store.subscribe({
    onControl: ignored,
    onMessages: ignored,
    onQueries: ignored,
    onStreams: ignored,
    onOutbox: ignored,
    onSchedules: ignored,
    onWork: ignored,
    onOutcomes: (workflowIds) => heard.push(workflowIds),
    onGap: () => (listens = true),
  });
  await waitUntil(() => listens, 'it listens');
  const told: string[] = [];
  bed.sql.on('notification', ({ channel, payload }) => {
    if (channel === 'apart.outcome') told.push(payload ?? '');
  });
  await bed.sql.query('LISTEN "apart.outcome"');
  for (let n = 0; n < 100; n++) store.announceOutcome(`${String(n)}-`.padEnd(500, 'x'));
  const isUnnamed = (payload: string): boolean => payload !== '' && !payload.startsWith('[');
  await waitUntil(() => told.some(isUnnamed), 'others are told');
  // Of this one it is told after that.
  await bed.sql.query(`SELECT pg_notify('apart.outcome', '["other"]')`);
  await waitUntil(() => heard.some((workflowIds) => workflowIds?.[0] === 'other'), 'it hears of the other one');
  expect(heard).not.toContain(null);
  await bed.sql.query(`SELECT pg_notify('apart.outcome', '')`);
  await waitUntil(() => heard.includes(null), 'what somebody else sends that names nothing means all');
  await bed.sql.query('UNLISTEN *');
  await store.close();
  await driver.close();
});
