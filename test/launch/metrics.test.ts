import { afterAll, beforeAll, expect, test } from 'vitest';
import { continueAsNew, defineWorkflow, runStep, type Holdfast } from '../../src/index.js';
import { FLEET_METRICS, PROCESS_METRICS } from '../../src/metrics-text.js';
import { FLUSH_SIZES } from '../../src/store/store-counters.js';
import { tableRows } from '../docs/markdown.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
const steps = defineWorkflow('steps', async (count: number) => {
  await Promise.all(
    Array.from({ length: count }, (_, index) => runStep(`step ${String(index)}`, () => Promise.resolve())),
  );
  return count;
});
const fails = defineWorkflow('fails', () => Promise.reject(new Error('as it should')));
const hangs = defineWorkflow('hangs', async () => {
  hanging.open();
  await new Promise(() => undefined);
});
const again = defineWorkflow('again', (round: number): Promise<unknown> =>
  round === 0 ? continueAsNew(again, 1) : Promise.resolve(),
);
let hanging = gate();

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [steps, fails, hangs, again],
    executorId: 'a "quoted" name',
    queues: [{ name: 'line', concurrency: 1 }],
  });
});
afterAll(() => bed.close());

/** What has been added since `before`. */
const since = (before: ReturnType<Holdfast['metrics']>) => {
  const now = holdfast.metrics();
  return {
    started: now.started - before.started,
    claimed: now.claimed - before.claimed,
    checkpoints: now.checkpoints - before.checkpoints,
    success: now.outcomes.success - before.outcomes.success,
    error: now.outcomes.error - before.outcomes.error,
    continued: now.executions.continued - before.executions.continued,
    parked: now.executions.parked - before.executions.parked,
  };
};

test('starts, results, outcomes, claims and ends are counted', async () => {
  const before = holdfast.metrics();
  await (await holdfast.start(steps, {}, 5)).result();
  await (await holdfast.start(fails, {})).result().catch(() => undefined);
  await (await holdfast.enqueue(steps, { queue: 'line' }, 2)).result();
  await (await holdfast.start(again, {}, 0)).result();
  await waitUntil(() => since(before).continued === 1, 'the reply to the end of the first run is there');
  expect(since(before)).toEqual({
    started: 3,
    claimed: 2,
    checkpoints: 7,
    success: 3,
    error: 1,
    continued: 1,
    parked: 0,
  });
});

test('what runs, and what was taken away', async () => {
  const before = holdfast.metrics();
  await holdfast.start(hangs, { workflowId: 'hangs' });
  await hanging.opened;
  expect(holdfast.metrics()).toMatchObject({ running: 1, isFenced: false });
  await holdfast.admin.cancel('hangs');
  await waitUntil(() => since(before).parked === 1, 'it has parked');
  expect(holdfast.metrics().running).toBe(0);
});

test('flushes are counted by their size', async () => {
  const before = holdfast.metrics().flushes;
  await (await holdfast.start(steps, {}, 400)).result();
  const { count, writes, classes } = holdfast.metrics().flushes;
  expect(writes - before.writes).toBeGreaterThanOrEqual(402);
  expect(classes.map((each) => each.writes)).toEqual([...FLUSH_SIZES, Infinity]);
  expect(classes.reduce((sum, each) => sum + each.count, 0)).toBe(count);
  // Results that are ready together travel together.
  expect(count - before.count).toBeLessThan(400);
});

test('version conflicts are counted apart from errors', async () => {
  const before = holdfast.metrics();
  const bumped = await bed.launch({
    workflows: [
      defineWorkflow('bumped', () =>
        runStep('bump', async () => {
          await bed.sql.query(
            `UPDATE holdfast.workflow_status SET record_version = record_version + 1 WHERE name = 'bumped'`,
          );
        }),
      ),
    ],
  });
  await bed.sql.query(`SELECT holdfast.enqueue_workflow('bumped', '[]')`);
  await waitUntil(() => bumped.metrics().outcomes.success === 1, 'it ends');
  expect(bumped.metrics()).toMatchObject({ versionConflicts: 1, refusedWrites: 0, outcomes: { error: 0 } });
  expect(holdfast.metrics().versionConflicts).toBe(before.versionConflicts);
  await bumped.close();
});

test('time in which the lease may have lapsed is counted, and a takeover is a recovery of the other', async () => {
  const lease = 300;
  const fenced = await bed.launch({ workflows: [steps], executorId: 'fenced', lease });
  await bed.sql.query('BEGIN');
  await bed.sql.query(`SELECT FROM holdfast.executor WHERE executor_id = 'fenced' FOR UPDATE`);
  await waitUntil(() => fenced.metrics().isFenced, 'its heartbeats have failed');
  await bed.sql.query('COMMIT');
  await waitUntil(() => !fenced.metrics().isFenced, 'it has compared what it runs');
  const { fencedMs, heartbeatsFailed } = fenced.metrics();
  expect(fencedMs).toBeGreaterThan(0);
  expect(heartbeatsFailed).toBeGreaterThan(0);
  expect(fenced.metrics().fencedMs).toBe(fencedMs);
  await fenced.close();

  hanging = gate();
  const dying = await bed.launch({ workflows: [hangs], executorId: 'dying', pollInterval: '1h' });
  const before = holdfast.metrics().recovered;
  await dying.start(hangs, { workflowId: 'left' });
  await hanging.opened;
  await bed.expireLease('dying');
  await waitUntil(() => holdfast.metrics().recovered === before + 1, 'it is recovered');
  await holdfast.admin.cancel('left');
  await dying.close();
});

test('the text has every metric with its type, labels escaped, and the numbers of the fleet', async () => {
  await holdfast.queues.pause('line');
  await holdfast.enqueue(steps, { queue: 'line', workflowId: 'waits' }, 1);
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, app_version = 'gone', queue = NULL,
            epoch = 1, attention = 'TEST' WHERE workflow_id = 'waits'`,
  );
  await holdfast.enqueue(steps, { queue: 'line' }, 1);
  const text = await holdfast.metricsText();
  const { started } = holdfast.metrics();
  expect(text).toContain(`holdfast_workflows_started_total{executor="a \\"quoted\\" name"} ${String(started)}\n`);
  expect(text).toContain('holdfast_flush_writes_bucket{executor="a \\"quoted\\" name",le="+Inf"}');
  expect(text).toContain('holdfast_fleet_executors{app_version=""} 1\n');
  expect(text).toContain('holdfast_fleet_workflows_waiting{queue=""} 1\n');
  expect(text).toContain('holdfast_fleet_workflows_waiting{queue="line"} 1\n');
  expect(text).toContain('holdfast_fleet_workflows_unserved{app_version="gone"} 1\n');
  expect(text).toContain('holdfast_fleet_workflows_attention 1\n');
  for (const line of text.trimEnd().split('\n')) {
    expect(line).toMatch(
      /^(# (HELP|TYPE) holdfast_\w+ .+|holdfast_\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? (\+Inf|-?[\d.e+-]+))$/,
    );
  }
  expect(await holdfast.metricsText({ fleet: false })).not.toContain('holdfast_fleet');
});

test('the documentation has every metric, with its type', () => {
  const documented = tableRows('docs/metrics.md')
    .filter(([name]) => name?.startsWith('`') === true)
    .map(([name, type]) => [name?.replaceAll('`', ''), type]);
  expect(documented).toEqual([...PROCESS_METRICS, ...FLEET_METRICS].map(({ name, type }) => [name, type]));
});
