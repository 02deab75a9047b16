import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { defineWorkflow, now, runStep, workflow, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { ConnectionLostError } from '../../src/errors/database-errors.js';
import { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import { defaultSchema } from '../support/conditions.js';
import { observe } from '../store/fixtures/observed-driver.js';
import { workflowDefinitionOf, type WorkflowDefinition } from '../../src/engine/definitions.js';
import { REQUEUE_POLICY } from '../../src/fleet/requeues.js';
import { launchParts } from './support/parts.js';
import { afterStatements, afterSweeps, giveBack, statusRow } from './support/sweeps.js';

// Who claims what, and when; who stops; and what is given back.

let bed: Bed;
let proxy: PgProxy;
const launched: Holdfast[] = [];
beforeAll(async () => {
  bed = await createBed();
  proxy = await startPgProxyFor(bed.database.url);
  // Brings the schema.
  await (await bed.launch({ workflows: [defineWorkflow('first', () => Promise.resolve())] })).close();
});
/** An executor of an earlier test must not claim what a later one leaves. */
afterEach(async () => {
  await Promise.all(launched.splice(0).map((holdfast) => holdfast.close()));
});
afterAll(async () => {
  await bed.close();
  await proxy.close();
});

async function launch(options: Parameters<Bed['launch']>[0]): Promise<Holdfast> {
  const holdfast = await bed.launch(options);
  launched.push(holdfast);
  return holdfast;
}

/** Its statements can be watched. */
function launchBehindProxy(options: Parameters<Bed['launch']>[0]): Promise<Holdfast> {
  return launch({ database: proxy.connectionString(bed.database.url), ...options });
}

/** It is cut off from the database for good: unlike one whose lease alone is over, it claims nothing of its own work again. */
async function launchToDie(
  options: Parameters<Bed['launch']>[0],
): Promise<{ start: Holdfast['start']; die(): Promise<void> }> {
  const own = await startPgProxyFor(bed.database.url);
  onTestFinished(() => own.close());
  const mortal = await launch({
    database: own.connectionString(bed.database.url),
    pollInterval: '1h',
    lease: '1h',
    ...options,
  });
  return {
    start: mortal.start.bind(mortal),
    async die() {
      await own.admit('refused');
      own.cutAll();
      await waitUntil(async () => {
        const { rows } = await bed.sql.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast'`,
        );
        return rows.length === 0;
      }, 'it has no session any more');
      await bed.expireLease(mortal.executorId);
    },
  };
}

function definitionOf(run: unknown): WorkflowDefinition {
  const definition = workflowDefinitionOf(run);
  if (definition === undefined) throw new TypeError('Not a workflow.');
  return definition;
}

/** A workflow whose first execution hangs in its step, and whose later ones do not. Counts the bodies by workflow. */
function hangingOnce(name: string) {
  const bodies = new Map<string, number>();
  const hang = gate();
  onTestFinished(() => {
    hang.open();
  });
  const run = defineWorkflow(name, () =>
    runStep('work', async () => {
      const { workflowId, epoch } = workflow();
      bodies.set(workflowId, (bodies.get(workflowId) ?? 0) + 1);
      if (epoch === 1) await hang.opened;
      return epoch;
    }),
  );
  return { run, bodies, hang };
}

test('C4 of what a dead executor left, each workflow is taken by one of those that look for it, and run once', async () => {
  const { run, bodies } = hangingOnce('swept');
  const dead = await launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  const workflowIds = Array.from({ length: 40 }, (_, index) => `swept ${String(index)}`);
  await Promise.all(workflowIds.map((workflowId) => dead.start(run, { workflowId })));
  await waitUntil(() => bodies.size === 40, 'all hang');
  const options = { workflows: [run], pollInterval: 5 };
  const [first] = await Promise.all([launch(options), launch(options), launch(options)]);
  await bed.expireLease(dead.executorId);
  const results = await Promise.all(workflowIds.map((workflowId) => first.handle(workflowId).result()));
  expect(results).toEqual(workflowIds.map(() => 2));
  expect([...bodies.values()]).toEqual(workflowIds.map(() => 2));
});

test('C4 a workflow that a live executor has taken from a dead one is not taken again by a later sweep', async () => {
  const { run, bodies, hang } = hangingOnce('taken');
  const dead = await launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  await dead.start(run, { workflowId: 'taken' });
  await waitUntil(() => bodies.size === 1, 'it hangs');
  const second = gate();
  const again = defineWorkflow('taken', () =>
    runStep('work', async () => {
      await second.opened;
      return 'by the live one';
    }),
  );
  const live = await launch({ workflows: [again] });
  await bed.expireLease(dead.executorId);
  await waitUntil(async () => (await statusRow(bed.sql, 'taken')).epoch === 2, 'it is taken over');
  const late = await launchBehindProxy({ workflows: [again], pollInterval: 10 });
  await afterSweeps(proxy);
  hang.open();
  expect(await statusRow(bed.sql, 'taken')).toMatchObject({ epoch: 2, executor_id: live.executorId });
  second.open();
  expect(await late.handle('taken').result()).toBe('by the live one');
});

test('C6 a park frees the slot: the process with one slot runs the next execution of the same workflow', async () => {
  const { run, bodies, hang } = hangingOnce('parks');
  const holdfast = await launch({ workflows: [run], maxConcurrent: 1, pollInterval: 10, lease: '1h' });
  const handle = await holdfast.start(run, { workflowId: 'parks' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await giveBack(bed.sql, 'parks');
  // It learns that when it wants to write.
  hang.open();
  expect(await handle.result()).toBe(2);
  expect(await statusRow(bed.sql, 'parks')).toMatchObject({ status: 'SUCCESS', epoch: 2, attempts: 2 });
});

test('a process that runs a workflow learns at its next comparison that it was given back, and parks', async () => {
  const { run, bodies } = hangingOnce('compared');
  const holdfast = await launch({ workflows: [run], pollInterval: '1h', lease: 300 });
  const handle = await holdfast.start(run, { workflowId: 'compared' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await giveBack(bed.sql, 'compared');
  await waitUntil(() => holdfast.health().running === 0, 'it has parked');
  const other = await launch({ workflows: [run] });
  expect(await other.handle('compared').result()).toBe(2);
  expect(await handle.result()).toBe(2);
});

test('the same executor ID twice: the newer takes over at once, the older stops and its health says superseded', async () => {
  const gates = [gate(), gate()];
  let bodies = 0;
  const run = defineWorkflow('superseded', () =>
    runStep('work', async () => {
      bodies += 1;
      const { epoch } = workflow();
      await gates[epoch - 1]?.opened;
      return epoch;
    }),
  );
  const older = await launch({ workflows: [run], executorId: 'twin', lease: 600, pollInterval: 20 });
  const lost = (await older.start(run, { workflowId: 'superseded' })).result();
  lost.catch(() => undefined);
  await waitUntil(() => bodies === 1, 'it runs');
  const newer = await launch({ workflows: [run], executorId: 'twin', lease: '1h', pollInterval: 20 });
  await waitUntil(() => bodies === 2, 'the newer runs it');
  await waitUntil(() => older.health().state === 'superseded', 'the older has noticed');
  await expect(lost).rejects.toMatchObject({ code: 'CLOSED' });
  await older.close();
  gates[0]?.open();
  expect(older.health()).toMatchObject({ state: 'superseded', running: 0 });
  expect(newer.health().state).toBe('running');
  expect(newer.health().incarnation).toBeGreaterThan(older.health().incarnation);
  await expect(older.start(run, {})).rejects.toMatchObject({ code: 'CLOSED' });
  gates[1]?.open();
  expect(await newer.handle('superseded').result()).toBe(2);
  expect(await statusRow(bed.sql, 'superseded')).toMatchObject({ status: 'SUCCESS', epoch: 2, executor_id: 'twin' });
});

test('C9 a registration that was given up and arrives behind the one sent in its place supersedes nobody', async () => {
  const driver = await openDriver(bed.database.url);
  onTestFinished(() => driver.close());
  let arrive: (() => Promise<unknown>) | undefined;
  const lossy: typeof driver = {
    ...observe(driver, () => undefined),
    query: (text, parameters, options) => {
      if (arrive !== undefined || !text.includes('register_executor(')) return driver.query(text, parameters, options);
      arrive = () => driver.query(text, parameters, options);
      return Promise.reject(new ConnectionLostError('No reply in time.'));
    },
  };
  const store = new PostgresStore({ driver: lossy, schema: defaultSchema(), notifications: false });
  const leaseMs = 600_000;
  const executorId = randomUUID();
  const register = (): Promise<number> =>
    store.registerExecutor({ executorId, appVersion: '', leaseMs, host: '', processId: 1 });
  const incarnation = await register();
  await arrive?.();
  expect(await store.heartbeat({ executorId, incarnation }, leaseMs)).toMatchObject({ state: 'renewed' });

  // A successor does, and stays, however late that one comes.
  const successor = await register();
  await arrive?.();
  expect(successor).toBe(incarnation + 1);
  expect(await store.heartbeat({ executorId, incarnation }, leaseMs)).toMatchObject({ state: 'superseded' });
  expect(await store.heartbeat({ executorId, incarnation: successor }, leaseMs)).toMatchObject({ state: 'renewed' });
});

test('what others own is recovered after their lease has expired, and not before', async () => {
  const { run, bodies } = hangingOnce('leased');
  const owner = await launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  await owner.start(run, { workflowId: 'leased' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  const other = await launchBehindProxy({ workflows: [run], pollInterval: 10 });
  await afterSweeps(proxy);
  expect(await statusRow(bed.sql, 'leased')).toMatchObject({ epoch: 1, executor_id: owner.executorId });
  await bed.expireLease(owner.executorId);
  expect(await other.handle('leased').result()).toBe(2);
});

test('C20 a recovery keeps the deadline: who takes over has only the time that is left', async () => {
  const { run, bodies } = hangingOnce('limited');
  const deadline = async (): Promise<unknown> =>
    (await bed.sql.query(`SELECT deadline FROM holdfast.workflow_status WHERE workflow_id = 'limited'`)).rows[0];
  const owner = await launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  await owner.start(run, { workflowId: 'limited', timeout: '1h' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  // As if it had begun an hour ago, but for the moment that is left.
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET deadline = clock_timestamp() + interval '200 ms' WHERE workflow_id = 'limited'`,
  );
  const before = await deadline();
  const patient = defineWorkflow('limited', () => runStep('work', () => new Promise(() => undefined)));
  const other = await launch({ workflows: [patient], pollInterval: 10 });
  await bed.expireLease(owner.executorId);
  await expect(other.handle('limited').result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect((await statusRow(bed.sql, 'limited')).epoch).toBe(2);
  expect(await deadline()).toEqual(before);
});

test('a workflow is recovered only by an executor of its app version', async () => {
  const { run, bodies } = hangingOnce('versioned');
  const old = await launchToDie({ workflows: [run], appVersion: '1' });
  await old.start(run, { workflowId: 'versioned' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await old.die();
  await launchBehindProxy({ workflows: [run], appVersion: '2', pollInterval: 10 });
  await afterSweeps(proxy);
  expect(await statusRow(bed.sql, 'versioned')).toMatchObject({ status: 'PENDING', epoch: 1, attempts: 1 });
  const fits = await launch({ workflows: [run], appVersion: '1' });
  expect(await fits.handle('versioned').result()).toBe(2);
});

test('C17 an executor leaves workflows of names that it does not know to one that does', async () => {
  const { run, bodies } = hangingOnce('unknown');
  const other = defineWorkflow('known', () => Promise.resolve());
  const dead = await launchToDie({ workflows: [run] });
  // Over its limit by now: even that is not for a stranger to say.
  await dead.start(run, { workflowId: 'unknown', maxAttempts: 1 });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await dead.die();
  await launchBehindProxy({ workflows: [other], pollInterval: 10 });
  await afterSweeps(proxy);
  expect(await statusRow(bed.sql, 'unknown')).toMatchObject({ status: 'PENDING', epoch: 1, attempts: 1 });
  const knows = await launch({ workflows: [run, other] });
  await expect(knows.handle('unknown').result()).rejects.toMatchObject({ code: 'MAX_ATTEMPTS_EXCEEDED' });
});

test('claims stop at maxConcurrent, and a slot that becomes free is filled without waiting for the next poll', async () => {
  let running = 0;
  let most = 0;
  const release: (() => void)[] = [];
  const run = defineWorkflow('crowded', () =>
    runStep('work', async () => {
      if (workflow().epoch === 1) return new Promise<void>(() => undefined);
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => release.push(resolve));
      running -= 1;
    }),
  );
  const leaver = await launch({ workflows: [run], pollInterval: '1h' });
  const workflowIds = Array.from({ length: 7 }, (_, index) => `crowded ${String(index)}`);
  await Promise.all(workflowIds.map((workflowId) => leaver.start(run, { workflowId })));
  await leaver.close();
  const holdfast = await launchBehindProxy({ workflows: [run], maxConcurrent: 2, pollInterval: '1h' });
  for (const _ of workflowIds) {
    await waitUntil(() => release.length > 0, 'a slot is filled');
    expect(holdfast.health().running).toBeLessThanOrEqual(2);
    release.shift()?.();
  }
  await Promise.all(workflowIds.map((workflowId) => holdfast.handle(workflowId).result()));
  expect(most).toBe(2);
});

test('a claim whose reply was lost is given back by the comparison of rows, and run', async () => {
  const { run, bodies } = hangingOnce('claim lost');
  const leaver = await launch({ workflows: [run], pollInterval: '1h' });
  await leaver.start(run, { workflowId: 'claim lost' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await leaver.close();
  const lost = proxy.arm({ do: 'drop-reply', reset: true }, /claim_work\(/);
  const holdfast = await launchBehindProxy({ workflows: [run], lease: 300, pollInterval: 20 });
  await lost.happened;
  expect(await statusRow(bed.sql, 'claim lost')).toMatchObject({ status: 'PENDING', epoch: 2 });
  expect(await holdfast.handle('claim lost').result()).toBe(3);
  expect(bodies.get('claim lost')).toBe(2);
});

test('a claim that was given back before its history arrived is not run: its body runs elsewhere', async () => {
  const epochs: number[] = [];
  const hang = gate();
  const run = defineWorkflow('late history', () =>
    runStep('work', async () => {
      const { epoch } = workflow();
      epochs.push(epoch);
      await hang.opened;
      return epoch;
    }),
  );
  const leaver = await launch({ workflows: [run], pollInterval: '1h' });
  await leaver.start(run, { workflowId: 'late history' });
  await waitUntil(() => epochs.length === 1, 'it runs');
  await leaver.close();
  const history = proxy.arm({ do: 'black-hole' }, /load_history/);
  await launchBehindProxy({ workflows: [run], lease: 300, pollInterval: 20 });
  await history.happened;
  const other = await launch({ workflows: [run] });
  await waitUntil(() => epochs.length === 2, 'it runs elsewhere');
  proxy.cutAll();
  await afterStatements(proxy, /load_history/, 0);
  await afterSweeps(proxy);
  expect(epochs).toEqual([1, 3]);
  hang.open();
  expect(await other.handle('late history').result()).toBe(3);
});

test('a start that was given back before its reply arrived is not run: its body runs elsewhere', async () => {
  const epochs: number[] = [];
  const run = defineWorkflow('late start', () =>
    runStep('work', () => {
      const { epoch } = workflow();
      epochs.push(epoch);
      return Promise.resolve(epoch);
    }),
  );
  const late = gate();
  const { engine } = await launchParts(bed.database.url, {
    workflows: [run],
    requeues: REQUEUE_POLICY,
    observer: () => undefined,
    leaseMs: 300,
    afterStart: () => late.opened,
  });
  const starting = engine.start(definitionOf(run), { workflowId: 'late start' }, []);
  await waitUntil(
    async () =>
      (await bed.sql.query(`SELECT FROM holdfast.workflow_status WHERE status = 'ENQUEUED'`)).rows.length === 1,
    'it is given back',
  );
  const other = await launch({ workflows: [run] });
  expect(await other.handle('late start').result()).toBe(2);
  late.open();
  await starting;
  await engine.idle();
  expect(epochs).toEqual([2]);
});

test('a start that is being given back when its reply arrives is not run, though its row says still that it is owned', async () => {
  const epochs: number[] = [];
  const run = defineWorkflow('crossing', async () => {
    const { epoch } = workflow();
    epochs.push(epoch);
    return runStep('work', () => Promise.resolve(epoch));
  });
  const late = gate();
  let isBeingGivenBack = false;
  const { engine } = await launchParts(bed.database.url, {
    workflows: [run],
    requeues: REQUEUE_POLICY,
    observer: (text) => {
      if (text.includes('release_workflow')) isBeingGivenBack = true;
    },
    leaseMs: 300,
    afterStart: async () => {
      await bed.sql.query('BEGIN');
      await bed.sql.query(`SELECT FROM holdfast.workflow_status WHERE workflow_id = 'crossing' FOR NO KEY UPDATE`);
      await late.opened;
    },
  });
  const starting = engine.start(definitionOf(run), { workflowId: 'crossing' }, []);
  await waitUntil(() => Promise.resolve(isBeingGivenBack), 'its giving back waits for the lock');
  late.open();
  await starting;
  await bed.sql.query('COMMIT');
  const other = await launch({ workflows: [run] });
  expect(await other.handle('crossing').result()).toBe(2);
  await engine.idle();
  // Replayed, it comes by again.
  expect([...new Set(epochs)]).toEqual([2]);
});

test('a row that somebody keeps locked delays its giving back, not the heartbeats', async () => {
  const { run, bodies } = hangingOnce('locked');
  const leaver = await launch({ workflows: [run], pollInterval: '1h' });
  await leaver.start(run, { workflowId: 'locked' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  await leaver.close();
  const lost = proxy.arm({ do: 'drop-reply', reset: true }, /claim_work\(/);
  const holdfast = await launchBehindProxy({ workflows: [run], lease: 300, pollInterval: 20 });
  await lost.happened;
  await bed.sql.query('BEGIN');
  await bed.sql.query(`SELECT FROM holdfast.workflow_status WHERE workflow_id = 'locked' FOR UPDATE`);
  await afterStatements(proxy, /release_workflow/, 1);
  // Two leases long.
  await afterStatements(proxy, /\.heartbeat\(/, 6);
  expect(holdfast.health().state).toBe('running');
  await bed.sql.query('COMMIT');
  expect(await holdfast.handle('locked').result()).toBe(3);
});

test('the comparison of rows may hang: heartbeats go on', async () => {
  const run = defineWorkflow('any', () => Promise.resolve());
  const hangs = proxy.arm({ do: 'black-hole' }, /owned_workflows/);
  const holdfast = await launchBehindProxy({ workflows: [run], lease: 600 });
  await hangs.happened;
  await afterStatements(proxy, /\.heartbeat\(/, 6);
  expect(holdfast.health().state).toBe('running');
  // Nor does it keep the lease from being given up at the end.
  await holdfast.close();
  const { rowCount } = await bed.sql.query(
    'SELECT FROM holdfast.executor WHERE executor_id = $1 AND lease_until <= clock_timestamp()',
    [holdfast.executorId],
  );
  expect(rowCount).toBe(1);
});

test('an executor whose row was cleared away registers again, and goes on', async () => {
  const run = defineWorkflow('cleared', () => runStep('work', () => Promise.resolve('done')));
  const holdfast = await launch({ workflows: [run], executorId: 'cleared', lease: 300 });
  await bed.sql.query(`DELETE FROM holdfast.executor WHERE executor_id = 'cleared'`);
  await waitUntil(
    async () =>
      (await bed.sql.query(`SELECT FROM holdfast.executor WHERE executor_id = 'cleared' AND lease_until > now()`))
        .rowCount === 1,
    'it has registered again',
  );
  await waitUntil(() => holdfast.health().state === 'running', 'it is well');
  const handle = await holdfast.start(run, { workflowId: 'cleared' });
  expect(await handle.result()).toBe('done');
});

test('the first heartbeats of a launch are lost: it tries again, and knows the time', async () => {
  const run = defineWorkflow('clock', () => now());
  proxy.arm({ do: 'drop-reply', reset: true }, /\.heartbeat\(/, { times: 2 });
  const holdfast = await launchBehindProxy({ workflows: [run] });
  const time = (await (await holdfast.start(run, {})).result()).getTime();
  expect(Math.abs(time - Date.now())).toBeLessThan(60_000);
});

test('C11 a process that shuts down claims nothing, and does not take from one of its ID what that claims', async () => {
  const hang = gate();
  const stays = defineWorkflow('stays', () => runStep('work', () => hang.opened));
  const { run, bodies } = hangingOnce('left');
  const leaver = await launch({ workflows: [run], pollInterval: '1h' });
  await leaver.start(run, { workflowId: 'left' });
  await waitUntil(() => bodies.size === 1, 'it runs');
  const old = await launchBehindProxy({
    workflows: [run, stays],
    executorId: 'restarted',
    pollInterval: 10,
    lease: 300,
  });
  await old.start(stays, { workflowId: 'stays' });
  const closing = old.close({ drainMs: 20_000 });
  // By then a claim that was under way has been answered.
  await afterStatements(proxy, /\.heartbeat\(/, 2);
  const claims = proxy.arm({ do: 'delay', delayMs: 0 }, /claim_work\(/, { times: 1_000 });
  await leaver.close();
  const fresh = await launch({ workflows: [run, stays], executorId: 'restarted', pollInterval: 10 });
  expect(await fresh.handle('left').result()).toBe(2);
  const taken = await statusRow(bed.sql, 'stays');
  hang.open();
  await closing;
  expect(claims.hits).toBe(0);
  claims.disarm();
  // The newer process had taken over what the old one was still running: the old one's end changes nothing of that.
  expect(taken).toMatchObject({ epoch: 2 });
  await fresh.handle('stays').result();
  expect(await statusRow(bed.sql, 'stays')).toMatchObject({ status: 'SUCCESS', epoch: 2, attempts: 2 });
  expect(fresh.health().state).toBe('running');
});

test('C12 a shutdown gives all back at once; another executor goes on with the same attempt, and nobody is rewritten', async () => {
  const { run, bodies } = hangingOnce('shut down');
  // It has no slot to take one of them again itself.
  const leaver = await launch({ workflows: [run], executorId: 'leaver', maxConcurrent: 5, lease: '1h' });
  const workflowIds = Array.from({ length: 5 }, (_, index) => `shut down ${String(index)}`);
  await Promise.all(workflowIds.map((workflowId) => leaver.start(run, { workflowId, maxAttempts: 1 })));
  await waitUntil(() => bodies.size === 5, 'all run');
  // One of them has another owner by now: due when that one is there, so that the claim of the leaver's launch does not take it.
  const delay = (by: string) =>
    bed.sql.query(
      `UPDATE holdfast.workflow_status SET status = 'DELAYED', attempts = 0, wake_at = clock_timestamp() + $1::interval
        WHERE workflow_id = 'shut down 0'`,
      [by],
    );
  await bed.sql.query('BEGIN');
  await giveBack(bed.sql, 'shut down 0');
  await delay('1 hour');
  await bed.sql.query('COMMIT');
  const taker = await launch({ workflows: [run], executorId: 'taker', pollInterval: 10 });
  await delay('0');
  await waitUntil(async () => (await statusRow(bed.sql, 'shut down 0')).status === 'SUCCESS', 'the taker has one');
  const before = await statusRow(bed.sql, 'shut down 0');
  await leaver.close();
  const results = await Promise.all(workflowIds.map((workflowId) => taker.handle(workflowId).result()));
  expect(results).toEqual(workflowIds.map(() => 2));
  for (const workflowId of workflowIds) {
    expect(await statusRow(bed.sql, workflowId)).toMatchObject({ attempts: 1, epoch: 2, executor_id: 'taker' });
  }
  expect(await statusRow(bed.sql, 'shut down 0')).toEqual(before);
  expect([...bodies.values()]).toEqual([2, 2, 2, 2, 2]);
});

test('a Holdfast closes in bounded time while its database does not answer', async () => {
  const { run, bodies } = hangingOnce('unreachable');
  const ownProxy = await startPgProxyFor(bed.database.url);
  onTestFinished(() => ownProxy.close());
  const holdfast = await launch({
    database: ownProxy.connectionString(bed.database.url),
    workflows: [run],
    pollInterval: 20,
    lease: 600,
  });
  const result = (await holdfast.start(run, { workflowId: 'unreachable' })).result();
  result.catch(() => undefined);
  await waitUntil(() => bodies.size === 1, 'it runs');
  await ownProxy.admit('refused');
  ownProxy.cutAll({ reset: true });
  await holdfast.close();
  await expect(result).rejects.toMatchObject({ code: 'CLOSED' });
  expect(await statusRow(bed.sql, 'unreachable')).toMatchObject({ status: 'PENDING', epoch: 1 });
  const other = await launch({ workflows: [run] });
  expect(await other.handle('unreachable').result()).toBe(2);
});

test('C18 heartbeats hang: the executor is fenced and says so, starts no body unverified, and recovers', async () => {
  const bodies: string[] = [];
  const between = gate();
  const run = defineWorkflow('fenced', async () => {
    await runStep('first', async () => void bodies.push('first'));
    await between.opened;
    return runStep('second', async () => {
      bodies.push('second');
      return 'done';
    });
  });
  const holdfast = await launchBehindProxy({ workflows: [run], lease: 400, pollInterval: '1h' });
  const handle = await holdfast.start(run, { workflowId: 'fenced' });
  const beats = proxy.arm({ do: 'black-hole' }, /\.heartbeat\(/, { times: 1_000 });
  const question = proxy.arm({ do: 'black-hole' }, /verify_ownership/, { times: 1_000 });
  await waitUntil(() => holdfast.health().state === 'fenced', 'it has fenced itself');
  expect(holdfast.health().heartbeatAgeMs).toBeGreaterThanOrEqual(400);
  between.open();
  await question.happened;
  expect(bodies).toEqual(['first']);
  beats.disarm();
  question.disarm();
  proxy.cutAll();
  expect(await handle.result()).toBe('done');
  await waitUntil(() => holdfast.health().state === 'running', 'it has recovered');
  expect(await statusRow(bed.sql, 'fenced')).toMatchObject({ status: 'SUCCESS', epoch: 1 });
});

test('C18 a fenced executor whose workflow was taken over meanwhile starts no body of it', async () => {
  const bodies: [string, number][] = [];
  const between = gate();
  const run = defineWorkflow('fenced and lost', async () => {
    const body = (name: string) => runStep(name, async () => void bodies.push([name, workflow().epoch]));
    await body('first');
    if (workflow().epoch === 1) await between.opened;
    await body('second');
    return workflow().epoch;
  });
  const holdfast = await launchBehindProxy({ workflows: [run], lease: 400, pollInterval: '1h' });
  const handle = await holdfast.start(run, { workflowId: 'fenced and lost' });
  const beats = proxy.arm({ do: 'black-hole' }, /\.heartbeat\(/, { times: 1_000 });
  await waitUntil(() => holdfast.health().state === 'fenced', 'it has fenced itself');
  const other = await launch({ workflows: [run], pollInterval: 10 });
  expect(await other.handle('fenced and lost').result()).toBe(2);
  between.open();
  expect(await handle.result()).toBe(2);
  await waitUntil(() => holdfast.health().running === 0, 'it has parked');
  expect(bodies).toEqual([
    ['first', 1],
    ['second', 2],
  ]);
  beats.disarm();
  proxy.cutAll();
});

test('a machine that was suspended: its monotonic clock stood still, and it is fenced all the same', async () => {
  const run = defineWorkflow('suspended', () => Promise.resolve());
  const holdfast = await launchBehindProxy({ workflows: [run], lease: '30s' });
  expect(holdfast.health().state).toBe('running');
  const wall = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => wall() + 60_000);
  expect(holdfast.health().state).toBe('fenced');
});
