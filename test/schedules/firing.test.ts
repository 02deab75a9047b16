import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  defineWorkflow,
  HoldfastClient,
  runStep,
  workflow,
  type CatchUpPolicy,
  type Holdfast,
  type OverlapPolicy,
} from '../../src/index.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { PostgresScheduleStore } from '../../src/store/postgres/postgres-schedule-store.js';
import { defaultSchema } from '../support/conditions.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, turnedAwayTwice } from '../support/pg-proxy.js';
import { withClockAt } from './support/moved-clock.js';

let bed: Bed;
const tick = defineWorkflow('tick', () => Promise.resolve(workflow().schedule?.scheduledAt.toISOString()));

beforeAll(async () => {
  bed = await createBed();
  await (await bed.launch({ workflows: [tick] })).close();
});
afterEach(async () => {
  await bed.sql.query('DELETE FROM holdfast.schedule');
});
afterAll(() => bed.close());

async function clientAt(moment?: string): Promise<HoldfastClient> {
  const database = moment === undefined ? bed.database.url : withClockAt(bed.database.url, moment);
  const client = await HoldfastClient.connect({ database, logger: silentLogger });
  onTestFinished(() => client.close());
  return client;
}

/** Until the end of the test: nobody else is to fire what the next one defines. */
async function launch(options: Parameters<Bed['launch']>[0]): Promise<Holdfast> {
  const holdfast = await bed.launch(options);
  onTestFinished(() => holdfast.close());
  return holdfast;
}

async function launchAt(moment: string, options: Partial<Parameters<Bed['launch']>[0]> = {}): Promise<Holdfast> {
  return launch({ workflows: [tick], database: withClockAt(bed.database.url, moment), ...options });
}

/** Ticks that have a run, and what runs them. */
async function runsOf(schedule: string): Promise<{ id: string; status: string; cause: string; at: string }[]> {
  const { rows } = await bed.sql.query<{ id: string; status: string; cause: string; at: Date }>(
    `SELECT workflow_id AS id, status, schedule_cause AS cause, scheduled_at AS at
       FROM holdfast.workflow_status WHERE schedule = $1 ORDER BY scheduled_at, workflow_id`,
    [schedule],
  );
  return rows.map((row) => ({ ...row, at: row.at.toISOString().replace('.000Z', 'Z') }));
}

const ticksOf = async (schedule: string): Promise<string[]> => (await runsOf(schedule)).map(({ at }) => at);

/** The store alone, so that nothing fires but what a test fires. */
async function storeAt(moment: string): Promise<PostgresScheduleStore> {
  const driver = await openDriver(withClockAt(bed.database.url, moment), { maxConnections: 5 });
  const store = new PostgresScheduleStore({ driver, schema: defaultSchema() });
  onTestFinished(async () => {
    store.close();
    await driver.close();
  });
  return store;
}

async function fire(store: PostgresScheduleStore, ticks: readonly string[], next: string, missed = 0) {
  const [schedule] = await store.due(null, 1);
  if (schedule === undefined) throw new Error('There is no schedule.');
  const request = { schedule, missed, nextMs: Date.parse(next), cancelledError: '"cancelled"' };
  return store.fire({ ...request, ticks: ticks.map((text) => Date.parse(text)) });
}

async function define(name: string, overlap: OverlapPolicy, moment: string, catchUp: CatchUpPolicy = 'last') {
  const client = await clientAt(moment);
  await client.schedules.define({ name, workflow: 'tick', cron: '0 * * * *', overlap, catchUp });
  return client;
}

test('C39 one run a tick, whoever fires it: four executors make up for eight hours of minutes at once', async () => {
  const client = await clientAt('2026-03-01T00:00:30Z');
  await client.schedules.define({
    name: 'raced',
    workflow: 'tick',
    cron: '* * * * *',
    overlap: 'queue',
    catchUp: 'all',
  });
  await Promise.all([1, 2, 3, 4].map(() => launchAt('2026-03-01T08:00:30Z', { workflows: [] })));
  const first = Date.parse('2026-03-01T00:01:00Z');
  const wanted = Array.from({ length: 480 }, (_, index) => new Date(first + index * 60_000).toISOString());
  await waitUntil(async () => (await ticksOf('raced')).length >= 480, 'all are fired');
  expect(await ticksOf('raced')).toEqual(wanted.map((text) => text.replace('.000Z', 'Z')));
  expect(await client.schedules.get('raced')).toMatchObject({
    nextFireAt: new Date('2026-03-01T08:01:00Z'),
    lastFiredAt: new Date('2026-03-01T08:00:00Z'),
    lastWorkflowId: 'raced/2026-03-01T08:00:00.000Z',
    skipped: 0,
  });
  await bed.sql.query(`DELETE FROM holdfast.workflow_status WHERE schedule = 'raced'`);
});

test('C39 of twenty that fire one tick at the same moment, one does', async () => {
  const store = await storeAt('2026-03-01T05:00:01Z');
  await define('twenty', 'queue', '2026-03-01T04:30:00Z');
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => fire(store, ['2026-03-01T05:00:00Z'], '2026-03-01T06:00:00Z')),
  );
  expect(answers.filter(({ kind }) => kind === 'fired')).toHaveLength(1);
  expect(await ticksOf('twenty')).toEqual(['2026-03-01T05:00:00Z']);
});

test.each([
  ['the reply is lost', { do: 'drop-reply', reset: true }],
  ['the process is cut off before', { do: 'cut-before', reset: true }],
] as const)('C39 no tick is lost or doubled when %s', async (what, fault) => {
  const proxy = await startPgProxyFor(bed.database.url);
  onTestFinished(() => proxy.close());
  const client = await clientAt();
  const holdfast = await launch({ workflows: [tick], database: proxy.connectionString(bed.database.url) });
  const armed = proxy.arm(fault, /fire_schedule/, { times: 2 });
  await client.schedules.define({ name: what, workflow: 'tick', cron: '* * * * * *', overlap: 'queue' });
  await waitUntil(async () => armed.hits === 2 && (await ticksOf(what)).length >= 3, 'three are fired');
  await holdfast.close();
  const seconds = (await ticksOf(what)).map((text) => Date.parse(text) / 1_000);
  expect(seconds).toEqual(Array.from(seconds, (_, index) => (seconds[0] ?? 0) + index));
});

test('C39 a tick is not lost when the one that fires it dies before the commit', async () => {
  const id = 'dies/2026-03-01T05:00:00.000Z';
  const store = await storeAt('2026-03-01T05:00:01Z');
  await define('dies', 'queue', '2026-03-01T04:30:00Z');
  // Holds the firing up in the middle of its transaction.
  const blocker = new pg.Client({ connectionString: bed.database.url });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query('BEGIN');
  await blocker.query(`SELECT holdfast.enqueue_workflow('tick', p_workflow_id => $1)`, [id]);
  const dies = expect(fire(store, ['2026-03-01T05:00:00Z'], '2026-03-01T06:00:00Z')).rejects.toBeDefined();
  await waitUntil(async () => {
    const { rowCount } = await bed.sql.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%fire_schedule%'`,
    );
    return rowCount === 1;
  }, 'the firing waits, and is killed');
  await dies;
  await blocker.query('ROLLBACK');
  expect(await runsOf('dies')).toEqual([]);
  expect(await fire(store, ['2026-03-01T05:00:00Z'], '2026-03-01T06:00:00Z')).toEqual({
    kind: 'fired',
    workflowIds: [id],
  });
});

test('C39 the scheduler outlives a database that answers with errors', async () => {
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (text: string) => warnings.push(text) };
  const client = await clientAt();
  await launch({ workflows: [tick], logger });
  await bed.sql.query('ALTER FUNCTION holdfast.due_schedules RENAME TO hidden');
  await client.schedules.define({ name: 'outlives', workflow: 'tick', cron: '* * * * * *', overlap: 'queue' });
  await waitUntil(() => warnings.filter((text) => text.includes('schedules')).length >= 2, 'it has failed twice');
  await bed.sql.query('ALTER FUNCTION holdfast.hidden RENAME TO due_schedules');
  await waitUntil(async () => (await ticksOf('outlives')).length > 0, 'it fires again');
});

test('C40 after eight hours of sleep each schedule follows its own catch-up policy, once', async () => {
  const client = await clientAt('2026-03-02T00:30:00Z');
  await define('none', 'skip', '2026-03-02T00:30:00Z', 'none');
  await define('last', 'skip', '2026-03-02T00:30:00Z', 'last');
  await define('all', 'queue', '2026-03-02T00:30:00Z', 'all');
  await client.schedules.define({ name: 'later', workflow: 'tick', cron: '0 12 * * *' });
  const holdfast = await launchAt('2026-03-02T08:30:00Z');
  const isNext = async (name: string): Promise<boolean> =>
    (await client.schedules.get(name)).nextFireAt?.getTime() === Date.parse('2026-03-02T09:00:00Z');
  await waitUntil(
    async () => (await Promise.all(['none', 'last', 'all'].map(isNext))).every(Boolean),
    'all have moved on',
  );
  await waitUntil(async () => (await runsOf('all')).every(({ status }) => status === 'SUCCESS'), 'all have run');
  expect(await ticksOf('none')).toEqual([]);
  expect(await ticksOf('last')).toEqual(['2026-03-02T08:00:00Z']);
  expect(await ticksOf('all')).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((hour) => `2026-03-02T0${String(hour)}:00:00Z`));
  const shown = await client.schedules.list();
  expect(shown.map(({ name, skipped }) => [name, skipped])).toEqual([
    ['all', 0],
    ['last', 7],
    ['later', 0],
    ['none', 8],
  ]);
  expect(await holdfast.handle('all/2026-03-02T03:00:00.000Z').result()).toBe('2026-03-02T03:00:00.000Z');
  expect((await client.schedules.get('later')).nextFireAt).toEqual(new Date('2026-03-02T12:00:00Z'));
});

test('a change of clocks: what the night skips fires at the end of the gap, on record under its instant', async () => {
  const client = await clientAt('2025-03-30T00:58:00Z');
  await client.schedules.define({ name: 'gap', workflow: 'tick', cron: '30 2 * * *', timeZone: 'Europe/Berlin' });
  expect(await client.schedules.nextFireTimes('gap', { count: 2 })).toEqual([
    new Date('2025-03-30T01:00:00Z'),
    new Date('2025-03-31T00:30:00Z'),
  ]);
  const holdfast = await launchAt('2025-03-30T01:00:01Z');
  await waitUntil(async () => (await runsOf('gap')).length === 1, 'it has fired');
  expect(await holdfast.handle('gap/2025-03-30T01:00:00.000Z').result()).toBe('2025-03-30T01:00:00.000Z');
});

test('skip drops a tick while an earlier run has not ended, and counts it', async () => {
  const store = await storeAt('2026-03-03T09:00:00Z');
  const client = await define('skips', 'skip', '2026-03-03T00:30:00Z');
  // The first of several that are due together is the one.
  await fire(store, ['2026-03-03T01:00:00Z', '2026-03-03T02:00:00Z'], '2026-03-03T03:00:00Z');
  await fire(store, ['2026-03-03T03:00:00Z'], '2026-03-03T04:00:00Z');
  expect(await ticksOf('skips')).toEqual(['2026-03-03T01:00:00Z']);
  await client.admin.cancel('skips/2026-03-03T01:00:00.000Z');
  await fire(store, ['2026-03-03T04:00:00Z'], '2026-03-03T05:00:00Z', 3);
  expect(await ticksOf('skips')).toEqual(['2026-03-03T01:00:00Z', '2026-03-03T04:00:00Z']);
  // A triggered run counts, a backfilled one does not.
  await client.admin.cancel('skips/2026-03-03T04:00:00.000Z');
  const triggered = await client.schedules.trigger('skips');
  await fire(store, ['2026-03-03T05:00:00Z'], '2026-03-03T06:00:00Z');
  await triggered.cancel();
  await client.schedules.backfill('skips', { from: new Date('2026-03-02'), to: new Date('2026-03-02T01:30:00Z') });
  await fire(store, ['2026-03-03T06:00:00Z'], '2026-03-03T07:00:00Z');
  expect(await client.schedules.get('skips')).toMatchObject({
    skipped: 1 + 1 + 3 + 1,
    lastFiredAt: new Date('2026-03-03T06:00:00Z'),
  });
});

test('cancel ends the earlier run, and of several that are due together runs the last', async () => {
  const store = await storeAt('2026-03-03T09:00:00Z');
  const client = await define('cancels', 'cancel', '2026-03-03T00:30:00Z');
  await fire(store, ['2026-03-03T01:00:00Z'], '2026-03-03T02:00:00Z');
  await fire(store, ['2026-03-03T02:00:00Z', '2026-03-03T03:00:00Z'], '2026-03-03T04:00:00Z');
  expect((await runsOf('cancels')).map(({ at, status }) => [at, status])).toEqual([
    ['2026-03-03T01:00:00Z', 'CANCELLED'],
    ['2026-03-03T03:00:00Z', 'ENQUEUED'],
  ]);
  expect((await client.admin.audit('cancels/2026-03-03T01:00:00.000Z')).items[0]).toMatchObject({
    verb: 'cancel',
    actor: 'schedule',
  });
  const triggered = await client.schedules.trigger('cancels');
  const statuses = (await runsOf('cancels')).map(({ id, status }) => [id === triggered.workflowId, status]);
  expect(statuses).toEqual([
    [true, 'ENQUEUED'],
    [false, 'CANCELLED'],
    [false, 'CANCELLED'],
  ]);
  await triggered.cancel();
});

test('what was computed from a definition that has changed is not fired', async () => {
  const store = await storeAt('2026-03-03T09:00:00Z');
  const client = await define('changed', 'queue', '2026-03-03T00:30:00Z');
  const [seen] = await store.due(null, 1);
  if (seen === undefined) throw new Error('There is no schedule.');
  const request = {
    schedule: seen,
    ticks: [seen.nextMs],
    missed: 0,
    nextMs: seen.nextMs + 3_600_000,
    cancelledError: '',
  };
  await client.schedules.update('changed', { maxAttempts: 3 });
  expect(await store.fire(request)).toEqual({ kind: 'stale' });
  await client.schedules.pause('changed');
  expect(await store.fire({ ...request, schedule: { ...seen, revision: seen.revision + 2 } })).toEqual({
    kind: 'stale',
  });
  expect(await store.due(null, 10)).toEqual([]);
  expect(await runsOf('changed')).toEqual([]);
});

test('ticks outside of what the schedule names are refused by the database', async () => {
  const store = await storeAt('2026-03-03T09:00:00Z');
  await define('bounded', 'queue', '2026-03-03T00:30:00Z');
  for (const [ticks, next] of [
    [['2026-03-03T00:59:59Z'], '2026-03-03T02:00:00Z'],
    [['2026-03-03T10:00:00Z'], '2026-03-03T11:00:00Z'],
    [['2026-03-03T02:00:00Z'], '2026-03-03T02:00:00Z'],
    [[], '2026-03-03T01:00:00Z'],
  ] as const) {
    await expect(fire(store, ticks, next)).rejects.toMatchObject({ sqlState: '22023' });
  }
});

test('runs in a queue of the schedule go one after the other, in the order of their ticks', async () => {
  let running = 0;
  let most = 0;
  const order: (string | undefined)[] = [];
  const work = defineWorkflow('work', () =>
    runStep('body', async () => {
      most = Math.max(most, ++running);
      order.push(workflow().schedule?.scheduledAt.toISOString());
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
    }),
  );
  const client = await clientAt('2026-03-04T00:30:00Z');
  const timing = { workflow: 'work', cron: '0 * * * *', overlap: 'queue', catchUp: 'all' } as const;
  await client.queues.define({ name: 'own', concurrency: 1 });
  await client.schedules.define({ name: 'shared queue', ...timing });
  await client.schedules.define({ name: 'own queue', ...timing, queue: 'own' });
  for (const name of ['shared queue', 'own queue']) {
    [running, most, order.length] = [0, 0, 0];
    await client.schedules.pause(name === 'own queue' ? 'shared queue' : 'own queue');
    const executors = await Promise.all([1, 2].map(() => launchAt('2026-03-04T06:30:00Z', { workflows: [work] })));
    await waitUntil(async () => (await runsOf(name)).filter(({ status }) => status === 'SUCCESS').length === 6, name);
    await Promise.all(executors.map((executor) => executor.close()));
    expect(most).toBe(1);
    expect(order).toEqual([1, 2, 3, 4, 5, 6].map((hour) => `2026-03-04T0${String(hour)}:00:00.000Z`));
    await bed.sql.query(`UPDATE holdfast.schedule SET paused = false, next_fire_at = '2026-03-04T01:00:00Z'
                          WHERE name = 'own queue'`);
  }
});

test('a run that a later tick cancels is told at once', async () => {
  const aborted = gate();
  const hang = defineWorkflow('hang', async () => {
    const { signal } = workflow();
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        aborted.open();
        resolve();
      });
    });
  });
  const holdfast = await launch({ workflows: [hang] });
  await holdfast.schedules.define({ name: 'told', workflow: hang, cron: '0 0 1 1 *', overlap: 'cancel' });
  const first = await holdfast.schedules.trigger('told');
  await waitUntil(async () => (await first.status()) === 'PENDING', 'it runs');
  const second = await holdfast.schedules.trigger('told');
  await aborted.opened;
  await expect(first.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  await second.cancel();
});

test('a run knows its schedule and tick, whichever execution runs it, and so does a fork', async () => {
  const release = gate();
  const told: unknown[] = [];
  const knows = defineWorkflow('knows', async () => {
    told.push(workflow().schedule);
    await runStep('wait', () => release.opened);
    return workflow().schedule?.scheduledAt;
  });
  const holdfast = await launch({ workflows: [knows, tick] });
  await holdfast.schedules.define({ name: 'known', workflow: knows, cron: '0 0 1 1 *' });
  const handle = await holdfast.schedules.trigger('known');
  await waitUntil(() => told.length === 1, 'it runs');
  const other = await launch({ workflows: [knows] });
  await holdfast.close();
  await waitUntil(() => told.length === 2, 'another one runs it');
  release.open();
  const { schedule } = await other.admin.get(handle.workflowId);
  expect(schedule).toMatchObject({ name: 'known', cause: 'trigger' });
  expect(told).toEqual(Array.from({ length: 2 }, () => ({ name: 'known', scheduledAt: schedule?.scheduledAt })));
  expect(await other.handle(handle.workflowId).result()).toEqual(schedule?.scheduledAt);
  const { workflowId } = await other.admin.fork(handle.workflowId, { fromStep: 0 });
  expect(await other.handle(workflowId).result()).toEqual(schedule?.scheduledAt);
  expect((await other.admin.get(workflowId)).schedule).toMatchObject({ name: 'known', cause: 'fork' });
  const plain = await other.start(knows, {});
  expect(await plain.result()).toBeUndefined();
});

test('a trigger runs beside an earlier run under skip, also while paused, and leaves the next tick alone', async () => {
  const client = await define('triggered', 'skip', '2026-03-05T00:30:00Z');
  await client.schedules.pause('triggered');
  const handles = [await client.schedules.trigger('triggered'), await client.schedules.trigger('triggered')];
  expect((await runsOf('triggered')).map(({ cause, status }) => [cause, status])).toEqual([
    ['trigger', 'ENQUEUED'],
    ['trigger', 'ENQUEUED'],
  ]);
  await client.schedules.resume('triggered');
  expect((await client.schedules.get('triggered')).nextFireAt).toEqual(new Date('2026-03-05T01:00:00Z'));
  await Promise.all(handles.map((handle) => handle.cancel()));
});

test('a trigger whose reply is lost has run once', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  onTestFinished(() => proxy.close());
  await define('lost', 'cancel', '2026-03-05T00:30:00Z');
  const client = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  onTestFinished(() => client.close());
  const lost = proxy.arm({ do: 'drop-reply', reset: true }, /run_schedule/);
  const handle = await client.schedules.trigger('lost');
  await lost.happened;
  expect((await runsOf('lost')).map(({ id, status }) => [id, status])).toEqual([[handle.workflowId, 'ENQUEUED']]);
  await handle.cancel();
});

test('a trigger, a backfill and a deletion whose reply is lost are done, also when the schedule is gone when they are sent again', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  onTestFinished(() => proxy.close());
  const lossy = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  onTestFinished(() => lossy.close());
  const late = async <Result>(statement: RegExp, call: () => Promise<Result>, before: () => Promise<unknown>) => {
    const lost = proxy.arm({ do: 'drop-reply' }, statement);
    const called = call();
    await lost.happened;
    await proxy.admit('closed-at-once');
    await before();
    await proxy.admit('open');
    return called;
  };
  const client = await clientAt();
  const remove = (): Promise<void> => client.schedules.delete('fleeting');

  await define('fleeting', 'queue', '2026-03-05T00:30:00Z');
  const handle = await late(/run_schedule/, () => lossy.schedules.trigger('fleeting'), remove);
  expect(['ENQUEUED', 'PENDING', 'SUCCESS', 'SUSPENDED']).toContain(await handle.status());

  await define('fleeting', 'queue', '2026-03-05T00:30:00Z');
  const range = { from: new Date('2026-03-05T01:00:00Z'), to: new Date('2026-03-05T02:00:00Z') };
  const runs = await late(/run_schedule/, () => lossy.schedules.backfill('fleeting', range), remove);
  expect(runs.length).toBeGreaterThan(0);
  expect(runs.every(({ isNew }) => isNew)).toBe(true);

  await define('fleeting', 'queue', '2026-03-05T00:30:00Z');
  await late(
    /delete_schedule/,
    () => lossy.schedules.delete('fleeting'),
    () => Promise.resolve(),
  );
  await expect(client.schedules.trigger('fleeting')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
  for (const id of [handle.workflowId, ...runs.map(({ workflowId }) => workflowId)]) await client.handle(id).cancel();
});

test('a deletion that could not be sent at first has not happened: a schedule that never was is not found', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  onTestFinished(() => proxy.close());
  const client = await HoldfastClient.connect({
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
  });
  onTestFinished(() => client.close());
  await proxy.admit('closed-at-once');
  proxy.cutAll();
  // Until there is no connection left: what is sent on one that is gone may have happened.
  const read = expect(client.schedules.list()).resolves.toBeDefined();
  await turnedAwayTwice(proxy);
  const deletion = expect(client.schedules.delete('never was')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
  await turnedAwayTwice(proxy);
  await proxy.admit('open');
  await Promise.all([read, deletion]);
});

test('a backfill runs each tick of its range once, one at a time, and not those that have run', async () => {
  const store = await storeAt('2026-03-06T09:00:00Z');
  const client = await define('filled', 'skip', '2026-03-06T02:30:00Z');
  await fire(store, ['2026-03-06T03:00:00Z'], '2026-03-06T04:00:00Z');
  const range = { from: new Date('2026-03-06T01:00:00Z'), to: new Date('2026-03-06T05:00:00Z') };
  const filled = await client.schedules.backfill('filled', range);
  expect(filled).toEqual(
    [1, 2, 3, 4].map((hour) => ({
      workflowId: `filled/2026-03-06T0${String(hour)}:00:00.000Z`,
      scheduledAt: new Date(`2026-03-06T0${String(hour)}:00:00Z`),
      isNew: hour !== 3,
    })),
  );
  expect((await client.schedules.backfill('filled', range)).map(({ isNew }) => isNew)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  const { rows } = await bed.sql.query(
    `SELECT DISTINCT queue, partition_key FROM holdfast.workflow_status WHERE schedule = 'filled' AND schedule_cause = 'backfill'`,
  );
  expect(rows).toEqual([{ queue: 'holdfast/schedules', partition_key: 'filled' }]);
  // Its tick comes, and has run.
  await client.admin.cancel('filled/2026-03-06T03:00:00.000Z');
  await fire(store, ['2026-03-06T04:00:00Z', '2026-03-06T05:00:00Z'], '2026-03-06T06:00:00Z');
  expect((await runsOf('filled')).map(({ at, cause }) => `${at} ${cause}`)).toEqual([
    '2026-03-06T01:00:00Z backfill',
    '2026-03-06T02:00:00Z backfill',
    '2026-03-06T03:00:00Z tick',
    '2026-03-06T04:00:00Z backfill',
    '2026-03-06T05:00:00Z tick',
  ]);
});

test('a backfill of too much, or of no range, is refused before anything is written', async () => {
  const client = await define('too much', 'skip', '2026-03-06T02:30:00Z');
  for (const range of [
    { from: new Date('2020-01-01'), to: new Date('2026-01-01') },
    { from: new Date('2026-01-02'), to: new Date('2026-01-01') },
    { from: new Date(NaN), to: new Date('2026-01-01') },
  ]) {
    await expect(client.schedules.backfill('too much', range)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  }
  expect(await runsOf('too much')).toEqual([]);
});

test('C41 a schedule whose queue is gone keeps no other one from firing, and fires when the queue is back', async () => {
  const client = await clientAt('2026-03-07T00:59:00Z');
  await client.queues.define({ name: 'goes' });
  await client.schedules.define({ name: 'a', workflow: 'tick', cron: '0 * * * *', queue: 'goes' });
  await client.schedules.define({ name: 'b', workflow: 'tick', cron: '0 * * * *' });
  await bed.sql.query(`DELETE FROM holdfast.queue WHERE name = 'goes'`);
  await expect(client.schedules.trigger('a')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  await launchAt('2026-03-07T01:00:01Z');
  await waitUntil(async () => (await ticksOf('b')).length === 1, 'the other one fires');
  expect(await ticksOf('a')).toEqual([]);
  await client.queues.define({ name: 'goes' });
  await waitUntil(async () => (await ticksOf('a')).length === 1, 'it fires');
});

test('C17 an executor fires schedules of workflows that it does not know, and leaves the runs to others', async () => {
  const client = await clientAt();
  const stranger = await launch({ workflows: [] });
  await client.schedules.define({ name: 'strange', workflow: 'tick', cron: '* * * * * *' });
  await waitUntil(async () => (await runsOf('strange')).length === 1, 'it has fired');
  const run = (await runsOf('strange'))[0];
  expect(run?.status).toBe('ENQUEUED');
  const knower = await launch({ workflows: [tick] });
  expect(await knower.handle(run?.id ?? '').result()).toBeDefined();
  await stranger.close();
});

test('without notifications, a schedule that is defined elsewhere fires at the pace of polls', async () => {
  await launch({ workflows: [tick], notifications: false });
  const client = await clientAt();
  await client.schedules.define({ name: 'polled', workflow: 'tick', cron: '* * * * * *' });
  await waitUntil(async () => (await runsOf('polled')).some(({ status }) => status === 'SUCCESS'), 'it has run');
});

test('with notifications, it need not wait for a poll', async () => {
  await launch({ workflows: [tick], pollInterval: '1h' });
  const client = await clientAt();
  await client.schedules.define({ name: 'told of', workflow: 'tick', cron: '* * * * * *' });
  await waitUntil(async () => (await runsOf('told of')).some(({ status }) => status === 'SUCCESS'), 'it has run');
});

test('a deleted schedule fires no more, and its runs stay', async () => {
  const store = await storeAt('2026-03-08T09:00:00Z');
  const client = await define('deleted', 'skip', '2026-03-08T02:30:00Z');
  await fire(store, ['2026-03-08T03:00:00Z'], '2026-03-08T04:00:00Z');
  await client.schedules.delete('deleted');
  expect(await store.due(null, 10)).toEqual([]);
  expect(await runsOf('deleted')).toHaveLength(1);
});
