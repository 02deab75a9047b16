import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy, type ProxyFault } from '../support/pg-proxy.js';
import { Workers, type Worker } from './support/worker.js';

// A process is killed, or paused, at every point of a transaction. The judges are the application's tables and what this process
// has written down of the bodies that began.

let bed: Bed;
let other: TestDatabase;
let elsewhere: pg.Client;
let workers: Workers;
let proxy: PgProxy;
beforeAll(async () => {
  bed = await createBed();
  other = await createTestDatabase();
  elsewhere = new pg.Client({ connectionString: other.url });
  await elsewhere.connect();
  for (const database of [bed.sql, elsewhere]) {
    await database.query(`CREATE TABLE account (cents int NOT NULL);
      CREATE TABLE payment (workflow_id text NOT NULL, epoch int NOT NULL);
      INSERT INTO account VALUES (1000)`);
  }
  workers = await Workers.prepare();
  proxy = await startPgProxyFor(bed.database.url);
});
afterEach(() => workers.killAll());
afterAll(async () => {
  await workers.close();
  await proxy.close();
  await elsewhere.end();
  await other.drop();
  await bed.close();
});

/** Sent in one packet with COMMIT. */
const CHECKPOINT = /(?:checkpoint|conclude)_transaction/;
const COMMIT = /^COMMIT$/i;
/** Frozen processes keep their locks for so long. */
const IDLE_TIMEOUT_MS = 700;
const LONG_IDLE_TIMEOUT_MS = 60_000;

let count = 0;
const nextId = (): string => `paying ${String(++count)}`;

interface Options {
  readonly viaProxy?: boolean;
  readonly lease?: number;
  readonly application?: string;
}

function launch(executorId: string, { viaProxy = false, lease = 15_000, ...rest }: Options = {}): Promise<Worker> {
  const database = viaProxy ? proxy.connectionString(bed.database.url) : bed.database.url;
  return workers.launch({ database, executorId, pollInterval: 20, lease, ...rest });
}

async function expectPaidOnce(workflowId: string, bodies: number, database: pg.Client = bed.sql): Promise<void> {
  await waitUntil(async () => {
    const query = 'SELECT FROM holdfast.workflow_outcome WHERE workflow_id = $1';
    return (await bed.sql.query(query, [workflowId])).rowCount === 1;
  }, `${workflowId} has ended`);
  await expectBooks(workflowId, bodies, database);
}

async function expectBooks(workflowId: string, bodies: number, database: pg.Client): Promise<void> {
  const payments = await database.query('SELECT FROM payment WHERE workflow_id = $1', [workflowId]);
  expect(payments.rowCount).toBe(1);
  const { rows } = await database.query('SELECT cents + (SELECT count(*)::int FROM payment) AS sum FROM account');
  expect(rows).toEqual([{ sum: 1000 }]);
  expect(workers.runsOf(workflowId)).toHaveLength(bodies);
}

test('killed in the body: nothing of it stays, and the next owner pays', async () => {
  const workflowId = nextId();
  const victim = await launch(`killed ${workflowId}`);
  const body = victim.hold('pay');
  void victim.start('paying', workflowId, LONG_IDLE_TIMEOUT_MS).catch(() => undefined);
  await body.arrived;
  await victim.kill();
  await bed.expireLease(`killed ${workflowId}`);
  await launch(`survivor ${workflowId}`);
  await expectPaidOnce(workflowId, 2);
});

/** More than what travels in one packet with COMMIT. */
const PADDING = 2_000;

const KILLS: readonly [point: string, padding: number, at: RegExp, fault: ProxyFault, bodies: number][] = [
  ['before the server got checkpoint and COMMIT', 0, CHECKPOINT, { do: 'black-hole' }, 2],
  ['after checkpoint and COMMIT, before their reply', 0, CHECKPOINT, { do: 'black-hole', afterForwarding: true }, 1],
  ['before the server got a long checkpoint', PADDING, CHECKPOINT, { do: 'black-hole' }, 2],
  ['after a long checkpoint, before its reply', PADDING, CHECKPOINT, { do: 'black-hole', afterForwarding: true }, 2],
  ['before the server got its COMMIT', PADDING, COMMIT, { do: 'black-hole' }, 2],
  ['after its COMMIT, before its reply', PADDING, COMMIT, { do: 'black-hole', afterForwarding: true }, 1],
];

test.each(KILLS)('C9 killed %s: paid once', async (_, padding, at, fault, bodies) => {
  const workflowId = nextId();
  const victim = await launch(`killed ${workflowId}`, { viaProxy: true });
  const body = victim.hold('pay');
  void victim.start('paying', workflowId, LONG_IDLE_TIMEOUT_MS, padding).catch(() => undefined);
  await body.arrived;
  const held = proxy.arm(fault, at);
  body.release();
  await held.happened;
  if (bodies === 1) {
    const query = 'SELECT FROM payment WHERE workflow_id = $1';
    await waitUntil(async () => (await bed.sql.query(query, [workflowId])).rowCount === 1, 'it is committed');
  }
  await victim.kill();
  await bed.expireLease(`killed ${workflowId}`);
  await launch(`survivor ${workflowId}`);
  await expectPaidOnce(workflowId, bodies);
});

test.each(['in the body', 'between the checkpoint and COMMIT'] as const)(
  'paused %s for longer than the lease: the idle timeout sets its locks free, and what it commits later is refused',
  async (point) => {
    const workflowId = nextId();
    const victim = await launch(`paused ${workflowId}`, { viaProxy: true, lease: 1_500 });
    const body = victim.hold('pay');
    void victim.start('paying', workflowId, IDLE_TIMEOUT_MS, PADDING).catch(() => undefined);
    await body.arrived;
    if (point === 'in the body') victim.freeze();
    else {
      const frozen = gate();
      const held = proxy.arm({ do: 'hold', until: frozen.opened }, CHECKPOINT);
      body.release();
      await held.happened;
      victim.freeze();
      frozen.open();
    }
    const survivor = await launch(`survivor ${workflowId}`);
    await expectPaidOnce(workflowId, 2);
    victim.thaw();
    body.release();
    expect(await victim.result(workflowId)).toBe(await survivor.result(workflowId));
    await waitUntil(async () => (await victim.health()).running === 0, 'the paused process has found out');
    await expectBooks(workflowId, 2, bed.sql);
  },
);

test('paused while checkpoint and COMMIT are on their way: they commit, and the takeover goes on from there', async () => {
  const workflowId = nextId();
  const victim = await launch(`paused ${workflowId}`, { viaProxy: true, lease: 1_500 });
  const body = victim.hold('pay');
  void victim.start('paying', workflowId, IDLE_TIMEOUT_MS).catch(() => undefined);
  await body.arrived;
  const frozen = gate();
  const held = proxy.arm({ do: 'hold', until: frozen.opened }, CHECKPOINT);
  body.release();
  await held.happened;
  victim.freeze();
  frozen.open();
  const survivor = await launch(`survivor ${workflowId}`);
  await expectPaidOnce(workflowId, 1);
  victim.thaw();
  expect(await victim.result(workflowId)).toBe(await survivor.result(workflowId));
  await expectBooks(workflowId, 1, bed.sql);
});

test('paused in a body whose lock nobody else wants: the takeover waits for nothing', async () => {
  const workflowId = nextId();
  const victim = await launch(`paused ${workflowId}`, { lease: 1_500 });
  const body = victim.hold('pay');
  void victim.start('paying', workflowId, LONG_IDLE_TIMEOUT_MS).catch(() => undefined);
  await body.arrived;
  victim.freeze();
  await launch(`survivor ${workflowId}`);
  await waitUntil(async () => {
    const query = 'SELECT epoch::int FROM holdfast.workflow_status WHERE workflow_id = $1';
    return (await bed.sql.query<{ epoch: number }>(query, [workflowId])).rows[0]?.epoch === 2;
  }, 'it is taken over');
  // Its body, now, does want the lock.
  await victim.kill();
  await expectPaidOnce(workflowId, 2);
});

test('another database, killed between the commit there and the record here: the next owner adopts what was paid', async () => {
  const workflowId = nextId();
  const application = other.url;
  const victim = await launch(`killed ${workflowId}`, { viaProxy: true, application });
  const body = victim.hold('pay');
  void victim.start('paying', workflowId, LONG_IDLE_TIMEOUT_MS).catch(() => undefined);
  const { ticket } = await body.arrived;
  const held = proxy.arm({ do: 'black-hole' }, /checkpoint_one|checkpoint_batch/);
  body.release();
  await held.happened;
  await victim.kill();
  await bed.expireLease(`killed ${workflowId}`);
  const survivor = await launch(`survivor ${workflowId}`, { application });
  expect(await survivor.result(workflowId)).toBe(`pay #${String(ticket)}`);
  await expectPaidOnce(workflowId, 1, elsewhere);
});

test.each(['in the body', 'between its completion and COMMIT'] as const)(
  'another database, paused %s for longer than the lease: a late process commits nothing',
  async (point) => {
    const workflowId = nextId();
    const front = await startPgProxyFor(other.url);
    const application = front.connectionString(other.url);
    const victim = await launch(`paused ${workflowId}`, { application, lease: 1_500 });
    const body = victim.hold('pay');
    void victim.start('paying', workflowId, IDLE_TIMEOUT_MS, PADDING).catch(() => undefined);
    await body.arrived;
    if (point === 'in the body') victim.freeze();
    else {
      const frozen = gate();
      const held = front.arm({ do: 'hold', until: frozen.opened }, /record_completion/);
      body.release();
      await held.happened;
      victim.freeze();
      frozen.open();
    }
    const survivor = await launch(`survivor ${workflowId}`, { application: other.url });
    await expectPaidOnce(workflowId, 2, elsewhere);
    victim.thaw();
    body.release();
    expect(await victim.result(workflowId)).toBe(await survivor.result(workflowId));
    await waitUntil(async () => (await victim.health()).running === 0, 'the paused process has found out');
    await expectBooks(workflowId, 2, elsewhere);
    await workers.killAll();
    await front.close();
  },
);
