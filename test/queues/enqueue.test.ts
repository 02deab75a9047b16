import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineWorkflow, Holdfast, HoldfastClient, type EnqueueOptions, type WorkflowHandle } from '../../src/index.js';
import { startPgProxyFor } from '../support/pg-proxy.js';
import { createBed, gate, silentLogger, waitUntil, type Bed, type Gate } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;

const gates = new Map<string, Gate>();
const runs: string[] = [];
const echo = defineWorkflow('echo', (value: unknown) => {
  runs.push(String(value));
  return Promise.resolve(value);
});
/** Runs until its gate is opened. */
const wait = defineWorkflow('wait', async (name: string) => {
  await gateOf(name).opened;
  return name;
});
const other = defineWorkflow('other', () => Promise.resolve('other'));
const strict = defineWorkflow('strict', (input: { n: number }) => Promise.resolve(input.n), {
  input: z.object({ n: z.number() }),
});
/** Enqueues under a deduplication ID, tells what came of it, and waits, so that it can be run again. */
const parent = defineWorkflow('parent', async (options: EnqueueOptions, name: string) => {
  const answer = await holdfast.enqueue(wait, options, name).then(
    (handle) => handle.workflowId,
    (error: unknown) => `${(error as { code: string }).code} ${(error as { workflowId: string }).workflowId}`,
  );
  await gateOf(`parent of ${name}`).opened;
  return answer;
});

function gateOf(name: string): Gate {
  let found = gates.get(name);
  if (found === undefined) {
    found = gate();
    gates.set(name, found);
  }
  return found;
}

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [echo, wait, other, strict, parent],
    queues: [{ name: 'q' }, { name: 'paused' }],
  });
  await holdfast.queues.pause('paused');
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function count(table: string, where: string): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM holdfast.${table} WHERE ${where}`,
  );
  return rows[0]?.n ?? -1;
}

test('a client without workflows enqueues by function and by name, and its handles return the outcome', async () => {
  const byFunction = await client.enqueue(echo, { queue: 'q' }, new Map([[1, new Date(0)]]));
  expect(await byFunction.result()).toEqual(new Map([[1, new Date(0)]]));
  const byName = await client.enqueue('echo', { queue: 'q', workflowId: 'by-name', attributes: { a: 1 } }, 'x');
  expect(await byName.result()).toBe('x');
  expect(await client.admin.get('by-name')).toMatchObject({ status: 'SUCCESS', attributes: { a: 1 } });
  expect(await (await client.start('echo', {}, 'started')).result()).toBe('started');
});

test('the same ID attaches, whoever enqueues it; under another name it is refused', async () => {
  await Promise.all(
    [1, 2, 3].map((n) => client.enqueue(echo, { queue: 'q', workflowId: 'same' }, `same ${String(n)}`)),
  );
  await (await holdfast.enqueue(echo, { queue: 'q', workflowId: 'same' }, 'same 4')).result();
  expect(runs.filter((run) => run.startsWith('same'))).toHaveLength(1);
  await expect(client.enqueue(other, { queue: 'q', workflowId: 'same' })).rejects.toMatchObject({
    code: 'WORKFLOW_ID_CONFLICT',
  });
});

test.each<[string, EnqueueOptions, unknown, string]>([
  ['a queue that does not exist', { queue: 'nowhere' }, { n: 1 }, 'QUEUE_NOT_FOUND'],
  ['a queue without a name', { queue: '' }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['an input that does not fit', { queue: 'q' }, { n: 'one' }, 'SCHEMA_VIOLATION'],
  ['a priority that is no whole number', { queue: 'q', priority: 0.5 }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['a key without a queue', { key: 'k' }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['an empty key', { queue: 'q', key: '' }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['a delay that is none', { queue: 'q', delay: 'soon' as '1s' }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['a deduplication ID with NUL', { deduplication: { id: 'a\0', onConflict: 'reject' } }, { n: 1 }, 'INVALID_ARGUMENT'],
  ['a pool as transaction', { transaction: new pg.Pool() as never }, { n: 1 }, 'INVALID_ARGUMENT'],
])('%s is refused before anything is written', async (_, options, input, code) => {
  for (const target of [holdfast, client]) {
    await expect(
      target.enqueue(strict, { ...options, workflowId: 'refused' }, input as { n: number }),
    ).rejects.toMatchObject({ code });
  }
  expect(await count('workflow_status', `workflow_id = 'refused'`)).toBe(0);
});

test('many are enqueued at once, each with its own result, and a bad one does not keep the others back', async () => {
  const results = await client.enqueueMany('echo', { queue: 'q', key: 'k' }, [
    { args: ['many 0'], workflowId: 'many' },
    { args: [() => 'not storable'] },
    { args: ['many 2'], priority: 1 },
    { args: ['many 3'], workflowId: 'many' },
    { args: ['many 4'], queue: 'q', deduplication: { id: 'many', onConflict: 'reject' } } as { args: [string] },
    { args: ['many 5'], deduplication: { id: 'many', onConflict: 'reject' } },
    { args: ['many 6'], deduplication: { id: 'many', onConflict: 'attach' } },
  ]);
  const shown = results.map((result) =>
    result.ok ? result.handle.workflowId : (result.error as { code?: string }).code,
  );
  expect(shown[0]).toBe('many');
  expect(shown[1]).toBe('VALUE_NOT_SERIALIZABLE');
  expect(shown[3]).toBe('many');
  expect(shown[5]).toBe('WORKFLOW_DEDUPLICATED');
  expect(shown[6]).toBe(shown[4]);
  await Promise.all(results.flatMap((result) => (result.ok ? [result.handle.result()] : [])));
  expect(runs.filter((run) => run.startsWith('many')).sort()).toEqual(['many 0', 'many 2', 'many 4']);
});

test('of a long list, the first are on their way while the others are prepared, and all keep their places', async () => {
  const seen: string[] = [];
  const items = Array.from({ length: 1_001 }, (_, n) => ({
    workflowId: `long ${String(n)}`,
    get args(): [unknown] {
      if (n === 1_000) seen.push('the last one is prepared');
      return [n];
    },
  }));
  const enqueued = client.enqueueMany(echo, { queue: 'paused' }, items);
  setImmediate(() => seen.push('others have their turn'));
  expect((await enqueued).every(({ ok }) => ok)).toBe(true);
  expect(seen.slice(0, 2)).toEqual(['others have their turn', 'the last one is prepared']);
  const { rows } = await bed.sql.query<{ workflow_id: string }>(
    `SELECT workflow_id FROM holdfast.workflow_status WHERE queue = 'paused' AND workflow_id LIKE 'long %' ORDER BY queued_at`,
  );
  expect(rows.map((row) => row.workflow_id)).toEqual(items.map(({ workflowId }) => workflowId));
});

test('a list that its owner empties, or that has holes, after the call: each item of it has its result', async () => {
  const items = new Array<{ workflowId: string; args: [unknown] }>(1_001);
  for (let n = 0; n < items.length; n++) if (n !== 700) items[n] = { workflowId: `emptied ${String(n)}`, args: [n] };
  const enqueued = client.enqueueMany(echo, { queue: 'paused' }, items);
  items.length = 0;
  const results = await enqueued;
  expect(results.map(({ ok }) => ok)).toEqual(results.map((_, n) => n !== 700));
  expect(results[700]).toMatchObject({ error: { code: 'INVALID_ARGUMENT' } });
  expect(await count('workflow_status', `workflow_id LIKE 'emptied %'`)).toBe(1_000);
});

test('a deduplication ID is held until its workflow has ended; the rejection names the holder', async () => {
  const deduplication = { id: 'until-ended', onConflict: 'reject' } as const;
  const first = await holdfast.enqueue(wait, { queue: 'q', deduplication }, 'until-ended');
  await expect(client.enqueue(wait, { queue: 'q', deduplication }, 'x')).rejects.toMatchObject({
    code: 'WORKFLOW_DEDUPLICATED',
    workflowId: first.workflowId,
  });
  const attached = await client.enqueue(
    wait,
    { queue: 'q', deduplication: { ...deduplication, onConflict: 'attach' } },
    'x',
  );
  expect(attached.workflowId).toBe(first.workflowId);
  // Of this queue only.
  await (await holdfast.enqueue(echo, { deduplication }, 'elsewhere')).result();
  gateOf('until-ended').open();
  expect(await attached.result()).toBe('until-ended');
  const next = await client.enqueue(echo, { queue: 'q', deduplication }, 'next');
  expect(await next.result()).toBe('next');
});

test('a deduplication ID with a window is held for that long, also when its workflow has ended', async () => {
  const held = { id: 'window held', window: 600_000, onConflict: 'reject' } as const;
  const first = await client.enqueue(echo, { queue: 'q', deduplication: held }, 'held');
  await first.result();
  await expect(client.enqueue(echo, { queue: 'q', deduplication: held }, 'x')).rejects.toMatchObject({
    workflowId: first.workflowId,
  });
  const deduplication = { id: 'window over', window: 400, onConflict: 'reject' } as const;
  await (await client.enqueue(echo, { queue: 'q', deduplication }, 'window 1')).result();
  await waitUntil(
    () =>
      client.enqueue(echo, { queue: 'q', deduplication }, 'window 2').then(
        () => true,
        () => false,
      ),
    'the window has passed',
  );
});

test('C35 attaching is safe against races: always a handle, never an error, and one workflow at a time', async () => {
  const others = await Promise.all(
    [1, 2, 3].map(() => HoldfastClient.connect({ database: bed.database.url, logger: silentLogger })),
  );
  for (let round = 0; round < 15; round++) {
    const deduplication = { id: `race ${String(round % 3)}`, onConflict: 'attach' } as const;
    const handles = await Promise.all(
      [client, ...others, ...others].map((each) =>
        each.enqueue(echo, { queue: 'q', deduplication }, `race ${String(round)}`),
      ),
    );
    for (const handle of handles) expect(await handle.result()).toMatch(/^race/);
  }
  await Promise.all(others.map((each) => each.close()));
  const { rows } = await bed.sql.query(`
    SELECT a.workflow_id FROM holdfast.workflow_status a JOIN holdfast.workflow_status b
        ON a.deduplication_id = b.deduplication_id AND a.workflow_id < b.workflow_id
     WHERE a.deduplication_id LIKE 'race%'
       AND tstzrange(a.started_at, a.completed_at) && tstzrange(b.started_at, b.completed_at)`);
  expect(rows).toEqual([]);
});

test('of twenty that race for one deduplication ID with reject, one is enqueued and nineteen learn which', async () => {
  const deduplication = { id: 'twenty', onConflict: 'reject' } as const;
  const settled = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 === 0 ? client : holdfast).enqueue(wait, { queue: 'q', deduplication }, 'twenty'),
    ),
  );
  const enqueued = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value.workflowId] : []));
  const holders = settled.flatMap((each) =>
    each.status === 'rejected' ? [(each.reason as { workflowId: string }).workflowId] : [],
  );
  expect(enqueued).toHaveLength(1);
  expect(holders).toEqual(Array.from({ length: 19 }, () => enqueued[0]));
  gateOf('twenty').open();
});

test('C36 a deduplication ID is free after a cancel, and taken again by resume unless another has it', async () => {
  const deduplication = { id: 'resumed', onConflict: 'reject' } as const;
  const options = { queue: 'paused', deduplication };
  const first = await client.enqueue(echo, options, 'resumed 1');
  await first.cancel();
  await bed.sql.query(`UPDATE holdfast.queue_deduplication SET checked_at = now() - interval '1 hour';
                       SELECT holdfast.clear_deduplication(1000)`);
  expect(await count('queue_deduplication', `deduplication_id = 'resumed'`)).toBe(0);
  await client.admin.resume(first.workflowId);
  await expect(client.enqueue(echo, options, 'x')).rejects.toMatchObject({ workflowId: first.workflowId });

  await first.cancel();
  const second = await client.enqueue(echo, options, 'resumed 2');
  await client.admin.resume(first.workflowId);
  expect([await first.status(), await second.status()]).toEqual(['ENQUEUED', 'ENQUEUED']);
  await expect(client.enqueue(echo, options, 'x')).rejects.toMatchObject({ workflowId: second.workflowId });
  await client.admin.delete(second.workflowId, { force: true });
  await (await client.enqueue(echo, options, 'resumed 3')).cancel();
});

test('C38 deduplication IDs that nobody holds are cleared away; those that are held stay', async () => {
  await (
    await client.enqueue(echo, { queue: 'q', deduplication: { id: 'swept', onConflict: 'reject' } }, 's')
  ).result();
  const held = await client.enqueue(wait, { queue: 'q', deduplication: { id: 'held', onConflict: 'reject' } }, 'held');
  await client.enqueue(echo, { queue: 'q', deduplication: { id: 'timed', window: '1h', onConflict: 'reject' } }, 't');
  await bed.sql.query(`UPDATE holdfast.queue_deduplication SET checked_at = now() - interval '1 hour';
                       SELECT holdfast.clear_deduplication(1000)`);
  const ids = (
    await bed.sql.query<{ id: string }>(
      `SELECT deduplication_id AS id FROM holdfast.queue_deduplication WHERE deduplication_id IN ('swept', 'held', 'timed') ORDER BY 1`,
    )
  ).rows.map(({ id }) => id);
  expect(ids).toEqual(['held', 'timed']);
  gateOf('held').open();
  await held.result();
});

test('C34 a recorded rejection replays as such, even if the deduplication ID is free again', async () => {
  const deduplication = { id: 'c34', onConflict: 'reject' } as const;
  const holder = await holdfast.enqueue(wait, { queue: 'q', deduplication }, 'c34 holder');
  const handle = await holdfast.start(parent, { workflowId: 'c34' }, { queue: 'q', deduplication }, 'c34');
  await waitUntil(() => count('step_result', `workflow_id = 'c34'`).then((n) => n === 1), 'the rejection is recorded');
  gateOf('c34 holder').open();
  await holder.result();
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL WHERE workflow_id = 'c34'`,
  );
  await waitUntil(
    () => count('workflow_status', `workflow_id = 'c34' AND epoch = 2`).then((n) => n === 1),
    'it runs again',
  );
  gateOf('parent of c34').open();
  expect(await handle.result()).toBe(`WORKFLOW_DEDUPLICATED ${holder.workflowId}`);
});

test('what a workflow enqueues is recorded with it: a replay finds it and does not enqueue again', async () => {
  const handle = await holdfast.start(parent, { workflowId: 'enqueues' }, { queue: 'q', key: 'k' }, 'enqueues');
  await waitUntil(() => count('step_intent', `workflow_id = 'enqueues'`).then((n) => n === 1), 'it is recorded');
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL WHERE workflow_id = 'enqueues'`,
  );
  await waitUntil(
    () => count('workflow_status', `workflow_id = 'enqueues' AND epoch = 2`).then((n) => n === 1),
    'it runs again',
  );
  gateOf('parent of enqueues').open();
  const childId = await handle.result();
  expect(await count('workflow_status', `parent_id = 'enqueues'`)).toBe(1);
  gateOf('enqueues').open();
  expect(await holdfast.handle(childId).result()).toBe('enqueues');
  expect(await holdfast.admin.get(childId)).toMatchObject({ parent: { workflowId: 'enqueues' }, queue: { key: 'k' } });
});

test('inside a workflow: attaching, an unknown queue, and many at once', async () => {
  const deduplication = { id: 'inside', onConflict: 'attach' } as const;
  const holder = await client.enqueue(wait, { queue: 'q', deduplication }, 'inside');
  gateOf('parent of inside').open();
  const attached = await holdfast.start(parent, {}, { queue: 'q', deduplication }, 'inside');
  expect(await attached.result()).toBe(holder.workflowId);
  const lost = await holdfast.start(parent, {}, { queue: 'nowhere' }, 'inside');
  expect(await lost.result()).toMatch(/^QUEUE_NOT_FOUND/);
  gateOf('inside').open();

  const fans = defineWorkflow('fans', async () => {
    const results = await fanned.enqueueMany(
      leaf,
      { queue: 'q' },
      [1, 2, 3].map((n) => ({ args: [n] })),
    );
    return Promise.all(results.map((result) => (result.ok ? result.handle.result() : Promise.resolve(-1))));
  });
  const leaf = defineWorkflow('leaf', (n: number) => Promise.resolve(n * 10));
  const fanned = await bed.launch({ workflows: [fans, leaf] });
  expect(await (await fanned.start(fans, {})).result()).toEqual([10, 20, 30]);
  await fanned.close();
});

test('cancelling a workflow cancels what it enqueued, unless that was to go on', async () => {
  const handle = await holdfast.start(parent, { workflowId: 'cancels' }, { queue: 'paused' }, 'cancels');
  const abandons = await holdfast.start(
    parent,
    { workflowId: 'abandons' },
    { queue: 'paused', onParentCancel: 'abandon' },
    'abandons',
  );
  await waitUntil(
    () => count('workflow_status', `parent_id IN ('cancels', 'abandons')`).then((n) => n === 2),
    'both are there',
  );
  await Promise.all([handle.cancel(), abandons.cancel()]);
  expect(await count('workflow_status', `parent_id = 'cancels' AND status = 'CANCELLED'`)).toBe(1);
  expect(await count('workflow_status', `parent_id = 'abandons' AND status = 'ENQUEUED'`)).toBe(1);
});

test("a workflow enqueued in the caller's own transaction is there exactly if that commits: pg", async () => {
  const own = new pg.Client({ connectionString: bed.database.url });
  await own.connect();
  await own.query('CREATE TABLE orders (id text PRIMARY KEY)');
  await own.query('BEGIN');
  await own.query(`INSERT INTO orders VALUES ('rolled back')`);
  await client.enqueue(echo, { queue: 'q', workflowId: 'rolled-back', transaction: own }, 'rolled back');
  await own.query('ROLLBACK');
  await expect(client.handle('rolled-back').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });

  await own.query('BEGIN');
  const handle = await holdfast.enqueue(
    echo,
    { queue: 'q', workflowId: 'committed', transaction: own },
    'it\'s "so" \u0000 \\',
  );
  const started = await client.start('echo', { transaction: own }, 'started in it');
  await expect(client.handle('committed').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  expect(runs).not.toContain('started in it');
  await own.query('COMMIT');
  expect(await handle.result()).toBe('it\'s "so" \u0000 \\');
  expect(await started.result()).toBe('started in it');

  // A refusal leaves the transaction usable.
  const deduplication = { id: 'in-transaction', onConflict: 'reject' } as const;
  await own.query('BEGIN');
  const [first, second] = await client.enqueueMany('echo', { queue: 'q', deduplication, transaction: own }, [
    { args: [1] },
    { args: [2] },
  ]);
  expect([first?.ok, second?.ok]).toEqual([true, false]);
  await expect(client.enqueue('echo', { queue: 'nowhere', transaction: own })).rejects.toMatchObject({
    code: 'QUEUE_NOT_FOUND',
  });
  await own.query(`INSERT INTO orders VALUES ('after')`);
  await own.query('COMMIT');
  expect((await own.query('SELECT id FROM orders')).rows).toEqual([{ id: 'after' }]);
  if (first?.ok === true) expect(await first.handle.result()).toBe(1);
  await own.end();
});

test('what PostgreSQL cannot hold is refused before it reaches the own transaction, which goes on', async () => {
  const own = new pg.Client({ connectionString: bed.database.url });
  await own.connect();
  await own.query('BEGIN');
  for (const bad of ['a\0b', 'a\ud800']) {
    const places: EnqueueOptions[] = [
      { instance: bad },
      { workflowId: bad },
      { queue: bad },
      { queue: 'q', key: bad },
      { deduplication: { id: bad, onConflict: 'reject' } },
      { singleton: { key: bad, onConflict: 'skip' } },
      { debounce: { key: bad, delay: 10 } },
      { attributes: { a: bad } },
      { attributes: { [bad]: 1 } },
    ];
    for (const options of places) {
      await expect(client.enqueue('echo', { ...options, transaction: own })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    }
  }
  expect((await own.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await own.query('ROLLBACK');
  await own.end();
});

test('many large workflows go into an own transaction in several statements, in their order', async () => {
  const own = new pg.Client({ connectionString: bed.database.url });
  await own.connect();
  await own.query('BEGIN');
  let largest = 0;
  const transaction = {
    query: (text: string, values: unknown[]) => {
      largest = Math.max(largest, ...values.map((value) => String(value).length));
      return own.query(text, values);
    },
  };
  const text = 'x'.repeat(3 * 1024 * 1024);
  const items = [1, 2, 3, 4, 5].map((n) => ({ workflowId: `large ${String(n)}`, args: [text] as [unknown] }));
  const results = await client.enqueueMany(echo, { queue: 'paused', transaction }, items);
  expect(results.every(({ ok }) => ok)).toBe(true);
  expect(largest).toBeLessThan(9 * 1024 * 1024);
  const { rows } = await own.query<{ workflow_id: string }>(
    `SELECT workflow_id FROM holdfast.workflow_status WHERE workflow_id LIKE 'large %' ORDER BY queued_at`,
  );
  expect(rows.map((row) => row.workflow_id)).toEqual(items.map(({ workflowId }) => workflowId));
  await own.query('ROLLBACK');
  await own.end();
});

test("a workflow enqueued in the caller's own transaction is there exactly if that commits: postgres", async () => {
  const sql = postgres(bed.database.url, { transform: postgres.camel });
  await sql
    .begin(async (transaction) => {
      await client.enqueue(echo, { queue: 'q', workflowId: 'porsager-back', transaction }, 1);
      throw new Error('changed my mind');
    })
    .catch(() => undefined);
  await expect(client.handle('porsager-back').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  const handles: WorkflowHandle[] = [];
  await sql.begin(async (transaction) => {
    handles.push(await client.enqueue(echo, { queue: 'q', transaction }, { a: [1, 'zwei'] }));
    await expect(client.enqueue(echo, { queue: 'nowhere', transaction }, 1)).rejects.toMatchObject({
      code: 'QUEUE_NOT_FOUND',
      message: expect.stringContaining('"nowhere"') as string,
    });
  });
  expect(await handles[0]?.result()).toEqual({ a: [1, 'zwei'] });
  // @ts-expect-error -- an sql is a pool, and no transaction
  await expect(client.enqueue(echo, { transaction: sql }, 1)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await sql.end();
});

test('a trigger enqueues: one workflow for each row, in the transaction of the row', async () => {
  await bed.sql.query(`
    CREATE TABLE signup (email text);
    CREATE FUNCTION on_signup() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM holdfast.enqueue_workflow('echo', jsonb_build_array(NEW.email), 'q', 'signup-' || NEW.email);
      RETURN NEW;
    END $$;
    CREATE TRIGGER signed_up AFTER INSERT ON signup FOR EACH ROW EXECUTE FUNCTION on_signup()`);
  await bed.sql.query(
    `BEGIN; INSERT INTO signup VALUES ('never'); ROLLBACK; INSERT INTO signup VALUES ('ada'), ('bob')`,
  );
  expect(await client.handle('signup-ada').result()).toBe('ada');
  expect(await client.handle('signup-bob').result()).toBe('bob');
  await expect(client.handle('signup-never').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
});

test.each([
  [`'echo', '[]', 'nowhere'`, 'HF001'],
  [`'wait', '["sql"]', 'paused', p_deduplication_id => 'sql'`, 'HF002'],
  [`'other', '[]', 'q', 'sql-id'`, 'HF003'],
  [`'echo', '{}'`, '22023'],
])('enqueue_workflow(%s) fails with SQLSTATE %s', async (call, code) => {
  await bed.sql.query(`SELECT holdfast.enqueue_workflow('wait', '["sql"]', 'paused', p_deduplication_id => 'sql',
                                                        p_on_conflict => 'attach')`);
  await bed.sql.query(`SELECT holdfast.enqueue_workflow('echo', '["sql"]', 'q', 'sql-id')`);
  await expect(bed.sql.query(`SELECT holdfast.enqueue_workflow(${call})`)).rejects.toMatchObject({ code });
});

test('enqueue_workflow answers with the ID that the workflow has, a UUIDv7 by default', async () => {
  const ask = async (call: string): Promise<string | undefined> =>
    (await bed.sql.query<{ id: string }>(`SELECT holdfast.enqueue_workflow(${call}) AS id`)).rows[0]?.id;
  const made = await ask(`'echo', '["made"]', p_delay => '50 ms', p_attributes => '{"a": 1}'`);
  expect(made).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(await client.handle(made ?? '').result()).toBe('made');
  const held = await ask(`'wait', '["m"]', 'paused', p_deduplication_id => 'm'`);
  expect(await ask(`'wait', '["m"]', 'paused', p_deduplication_id => 'm', p_on_conflict => 'attach'`)).toBe(held);
});

test('an open transaction that is taking an ID holds up whoever wants the same one, and nobody else', async () => {
  await bed.sql.query('BEGIN');
  await bed.sql.query(
    `SELECT holdfast.enqueue_workflow('wait', '["mine"]', 'q', 'wanted', p_deduplication_id => 'wanted')`,
  );
  const wanting = [
    client.enqueue(wait, { queue: 'q', workflowId: 'wanted' }, 'theirs'),
    client.enqueue(wait, { queue: 'q', deduplication: { id: 'wanted', onConflict: 'attach' } }, 'theirs'),
  ];
  const free = await client.enqueueMany(
    'echo',
    { queue: 'q' },
    Array.from({ length: 50 }, (_, n) => ({ args: [n] })),
  );
  await Promise.all(free.flatMap((result) => (result.ok ? [result.handle.result()] : [])));
  await bed.sql.query('COMMIT');
  const handles = await Promise.all(wanting);
  expect(handles.map(({ workflowId }) => workflowId)).toEqual(['wanted', 'wanted']);
  gateOf('mine').open();
  for (const handle of handles) expect(await handle.result()).toBe('mine');
});

test('without notifications everything works at the pace of the poll', async () => {
  const quiet = await HoldfastClient.connect({
    database: bed.database.url,
    notifications: false,
    pollInterval: 20,
    logger: silentLogger,
  });
  expect(await (await quiet.enqueue(echo, { queue: 'q' }, 'quiet')).result()).toBe('quiet');
  await quiet.close();
  await expect(quiet.enqueue(echo, { queue: 'q' }, 'x')).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(quiet.handle('x').result()).rejects.toMatchObject({ code: 'CLOSED' });
});

test('a client checks the schema, and does not make one', async () => {
  await expect(
    HoldfastClient.connect({ database: bed.database.url, schema: 'nobody', logger: silentLogger }),
  ).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' });
  await expect(HoldfastClient.connect({ databse: 'x' } as object)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test.each<[string, unknown]>([
  ['no name', { name: '' }],
  ['an unknown setting', { name: 'x', concurency: 1 }],
  ['a limit of zero', { name: 'x', concurrency: 0 }],
  ['a rate without a period', { name: 'x', rateLimit: { limit: 1 } }],
  ['a period that is none', { name: 'x', rateLimit: { limit: 1, period: 'daily' } }],
])('a queue with %s is refused', async (_, definition) => {
  await expect(holdfast.queues.define(definition as { name: string })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  await expect(
    Holdfast.launch({ workflows: [], database: bed.database.url, queues: [definition as { name: string }] }),
  ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test('queues are defined, replaced, changed and asked for at run time', async () => {
  await client.queues.define({ name: 'new', concurrency: 3, keyRateLimit: { limit: 2, period: '1s' } });
  expect(await holdfast.queues.get('new')).toMatchObject({
    concurrency: 3,
    executorConcurrency: null,
    rateLimit: null,
    keyRateLimit: { limit: 2, period: 1_000 },
    paused: false,
    waiting: 0,
  });
  await client.queues.define({ name: 'new', keyConcurrency: 1 });
  expect(await holdfast.queues.get('new')).toMatchObject({ concurrency: null, keyConcurrency: 1, keyRateLimit: null });
  expect((await client.queues.list()).map(({ name }) => name)).toEqual(['new', 'paused', 'q']);
  for (const call of [
    () => client.queues.get('none'),
    () => client.queues.pause('none'),
    () => client.queues.update('none', { concurrency: 1 }),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  }
});

test('C9 an enqueue whose reply was lost recognises its own commit: it is enqueued once', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    notifications: false,
    pollInterval: 20,
    logger: silentLogger,
  });
  const lost = proxy.arm({ do: 'drop-reply' }, /enqueue_batch/, { times: 1 });
  const deduplication = { id: 'lost reply', onConflict: 'reject' } as const;
  const handle = await lossy.enqueue(echo, { queue: 'q', deduplication }, 'lost reply');
  expect(lost.hits).toBe(1);
  expect(await handle.result()).toBe('lost reply');
  expect(runs.filter((run) => run === 'lost reply')).toHaveLength(1);
  await lossy.close();
  await proxy.close();
});

test('C9 an enqueue whose reply was lost is done, whatever becomes of its queue and its place before it is sent again', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    notifications: false,
    logger: silentLogger,
  });
  /** Enqueues; the reply is lost, and before it is sent again something happens. */
  const enqueueLate = async (options: EnqueueOptions, before: () => Promise<unknown>): Promise<WorkflowHandle> => {
    const lost = proxy.arm({ do: 'drop-reply' }, /enqueue_batch/);
    const enqueued = lossy.enqueue(echo, options, 'late');
    await lost.happened;
    await proxy.admit('closed-at-once');
    await before();
    await proxy.admit('open');
    return enqueued;
  };
  const newer = (options: EnqueueOptions): Promise<WorkflowHandle> => client.enqueue(echo, options, 'newer');

  // Its queue is deleted.
  await holdfast.queues.define({ name: 'gone' });
  await holdfast.queues.pause('gone');
  const released = await enqueueLate({ queue: 'gone' }, () => holdfast.queues.delete('gone', { workflows: 'release' }));
  expect(await released.result()).toBe('late');

  // It has ended, and another one has its deduplication ID.
  const deduplication = { id: 'passed on', onConflict: 'reject' } as const;
  const ended = await enqueueLate({ workflowId: 'ended', deduplication }, async () => {
    await client.handle('ended').result();
    await newer({ queue: 'paused', deduplication });
  });
  expect(await ended.result()).toBe('late');

  // A newer one of its singleton has taken its place: that one stays.
  const singleton = { key: 'newest', onConflict: 'cancel-older' } as const;
  let newest: WorkflowHandle | undefined;
  const older = await enqueueLate({ queue: 'paused', singleton }, async () => {
    newest = await newer({ queue: 'paused', singleton });
  });
  expect([await older.status(), await newest?.status()]).toEqual(['CANCELLED', 'ENQUEUED']);
  await lossy.close();
  await proxy.close();
});
