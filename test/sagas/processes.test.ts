import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy, type ProxyFault } from '../support/pg-proxy.js';
import { snapshot } from '../processes/support/record.js';
import { Workers, type Run } from '../processes/support/worker.js';

// A process is killed, paused, or does not get the reply, at every point of a saga. What its bodies have done, and undone, is judged
// from outside, by what they announced.

let bed: Bed;
let workers: Workers;
let proxy: PgProxy;
beforeAll(async () => {
  bed = await createBed();
  workers = await Workers.prepare();
  proxy = await startPgProxyFor(bed.database.url);
});
afterEach(() => workers.killAll());
afterAll(async () => {
  await workers.close();
  await proxy.close();
  await bed.close();
});

const WRITE = /start_batch|checkpoint_one|checkpoint_batch|complete_batch|record_intent|begin_rollback|plan_rollback/;

/** The writes of `saga` in their order, and the body whose result is lost with one that the server did not get. */
const POINTS = [
  ['the start', undefined],
  ['the intent to reserve', undefined],
  ['the checkpoint of "reserve"', 'reserve'],
  ['the intent to charge', undefined],
  ['the checkpoint of "charge"', 'charge'],
  ['the marker', undefined],
  ['the plan', undefined],
  ['the end of the refund', 'refund'],
  ['the end of the release', 'release'],
  ['the end of the cleaning up', 'clean up'],
  ['the outcome', undefined],
] as const;
const AT_POINTS = POINTS.map(([point, lost], index) => [point, index, lost] as const);
const BODIES = ['reserve', 'charge', 'refund', 'release', 'clean up'];

function armAt(index: number, fault: ProxyFault) {
  let seen = 0;
  return proxy.arm(fault, ({ sql }) => WRITE.test(sql) && seen++ === index);
}

const launch = (executorId: string) =>
  workers.launch({ database: proxy.connectionString(bed.database.url), executorId, pollInterval: 20 });

/** Every thing was done once and undone once, in this order; the body that was interrupted was run again under the same key. */
async function expectUndone(workflowId: string, error: unknown, interrupted?: string): Promise<void> {
  expect(error).toMatchObject({ message: expect.stringContaining('the saga fails') as string });
  const runs = workers.runsOf(workflowId);
  expect(namesOf(runs)).toEqual(BODIES.flatMap((name) => (name === interrupted ? [name, name] : [name])));
  const keys = new Map(runs.map(({ name, key }) => [name, key]));
  expect(new Set(keys.values()).size).toBe(BODIES.length);
  expect(runs.filter(({ name, key }) => keys.get(name) !== key)).toEqual([]);
  const record = await snapshot(bed.sql, workflowId);
  expect(record.workflow_status.map(({ status }) => status)).toEqual(['ERROR']);
  expect(record.workflow_outcome).toHaveLength(1);
  expect(record.step_result.map(({ seq, kind }) => [seq, kind]).sort()).toEqual([
    [0, 'step'],
    [1, 'step'],
    [2, 'rollback'],
    [3, 'compensation'],
    [4, 'compensation'],
    [5, 'compensation'],
  ]);
  expect(record.workflow_ownership.filter(({ ended_at }) => ended_at === null)).toEqual([]);
}

const namesOf = (runs: readonly Run[]): string[] => runs.map(({ name }) => name);

async function expectRecovery(workflowId: string, interrupted: string | undefined): Promise<void> {
  await bed.expireLease(`killed ${workflowId}`);
  const survivor = await workers.launch({ database: bed.database.url, pollInterval: 20 });
  await survivor.start('saga', workflowId, 'fail');
  await expectUndone(workflowId, await survivor.result(workflowId).catch((error: unknown) => error), interrupted);
}

test.each(AT_POINTS)('killed before the server got %s: what was done is undone, each once', async (_, index, lost) => {
  const workflowId = `before ${String(index)}`;
  const victim = await launch(`killed ${workflowId}`);
  const held = armAt(index, { do: 'black-hole' });
  void victim.start('saga', workflowId, 'fail').catch(() => undefined);
  await held.happened;
  await victim.kill();
  await expectRecovery(workflowId, lost);
});

test.each(AT_POINTS)(
  'killed after the commit of %s: what was done is undone, and no body is run twice',
  async (_, index) => {
    const workflowId = `after ${String(index)}`;
    const victim = await launch(`killed ${workflowId}`);
    const held = armAt(index, { do: 'black-hole', afterForwarding: true });
    void victim.start('saga', workflowId, 'fail').catch(() => undefined);
    await held.happened;
    await waitUntil(() => isCommitted(workflowId, index), 'the write is committed');
    await victim.kill();
    await expectRecovery(workflowId, undefined);
  },
);

/** Whether as much is on record as after so many writes. The claim of the rollback, which is none of them, raises the version too. */
async function isCommitted(workflowId: string, index: number): Promise<boolean> {
  const { rows } = await bed.sql.query<{ version: string }>(
    'SELECT record_version AS version FROM holdfast.workflow_status WHERE workflow_id = $1',
    [workflowId],
  );
  return Number(rows[0]?.version ?? 0) >= index + 1 + (index > 5 ? 1 : 0);
}

test.each(BODIES)('killed in the body of "%s": it is run again under its key, and nothing else is', async (name) => {
  const workflowId = `in ${name}`;
  const victim = await launch(`killed ${workflowId}`);
  const body = victim.hold(name);
  void victim.start('saga', workflowId, 'fail').catch(() => undefined);
  await body.arrived;
  await victim.kill();
  await expectRecovery(workflowId, name);
});

test.each(AT_POINTS)(
  'C9 the reply to %s is lost with a reset: it counts, and no body is run again',
  async (_, index) => {
    const workflowId = `reset ${String(index)}`;
    const worker = await launch(workflowId);
    const fault = armAt(index, { do: 'drop-reply', reset: true });
    await worker.start('saga', workflowId, 'fail');
    await expectUndone(workflowId, await worker.result(workflowId).catch((error: unknown) => error));
    expect(fault.hits).toBe(1);
  },
);

test.each(AT_POINTS)('C9 the connection is closed before the server gets %s: it is sent again', async (_, index) => {
  const workflowId = `cut ${String(index)}`;
  const worker = await launch(workflowId);
  const fault = armAt(index, { do: 'cut-before' });
  await worker.start('saga', workflowId, 'fail');
  await expectUndone(workflowId, await worker.result(workflowId).catch((error: unknown) => error));
  expect(fault.hits).toBe(1);
});

test.each(['refund', 'release', 'clean up'])(
  'paused in the body of "%s" for longer than its lease, and taken over: it undoes nothing more',
  async (name) => {
    const workflowId = `zombie ${name}`;
    const zombie = await workers.launch({
      database: proxy.connectionString(bed.database.url),
      executorId: workflowId,
      lease: 400,
      pollInterval: 3_600_000,
    });
    const body = zombie.hold(name);
    await zombie.start('saga', workflowId, 'fail');
    await body.arrived;
    zombie.freeze();
    const owner = await workers.launch({ database: bed.database.url, pollInterval: 20 });
    await expectUndone(workflowId, await owner.result(workflowId).catch((error: unknown) => error), name);
    const before = await snapshot(bed.sql, workflowId);
    body.release();
    zombie.thaw();
    await expect(zombie.result(workflowId)).rejects.toThrow('the saga fails');
    await waitUntil(async () => (await zombie.health()).running === 0, 'the zombie has parked');
    expect(await snapshot(bed.sql, workflowId)).toEqual(before);
    expect(workers.runsOf(workflowId)).toHaveLength(BODIES.length + 1);
  },
);

test('cancelled with compensation while its process is killed: another one undoes what was done', async () => {
  const workflowId = 'cancelled';
  const victim = await launch(`killed ${workflowId}`);
  const body = victim.hold('refund');
  await victim.start('saga', workflowId, 'wait');
  await waitUntil(() => workers.runsOf(workflowId).length === 2, 'it waits');
  await waitUntil(async () => (await snapshot(bed.sql, workflowId)).step_intent.length === 3, 'it sleeps');
  await bed.sql.query(
    `SELECT holdfast.cancel_with_compensation($1, gen_random_uuid(), 'test', NULL, 'cancel', '{"message":"x"}')`,
    [workflowId],
  );
  await body.arrived;
  await victim.kill();
  await bed.expireLease(`killed ${workflowId}`);
  const survivor = await workers.launch({ database: bed.database.url, pollInterval: 20 });
  await survivor.result(workflowId).catch(() => undefined);
  expect(namesOf(workers.runsOf(workflowId))).toEqual(['reserve', 'charge', 'refund', 'refund', 'release', 'clean up']);
  expect((await snapshot(bed.sql, workflowId)).workflow_status[0]?.['status']).toBe('CANCELLED');
});
