import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { idempotencyKey } from '../../src/engine/attempt-context.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy, type ProxyFault } from '../support/pg-proxy.js';
import { Workers, type Worker } from './support/worker.js';

// A process is killed, or paused, at every point between intent, body and record. The judge is what this process has written
// down of the bodies that began: the books of the other side.

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

type Name = 'charging' | 'once';
const INTENT = /record_intent/;
const RECORD = /checkpoint_one|checkpoint_batch/;

let count = 0;
const idOf = (name: Name): string => `${name} ${String(++count)}`;

function launch(executorId: string, { viaProxy = false, lease = 15_000 } = {}): Promise<Worker> {
  const database = viaProxy ? proxy.connectionString(bed.database.url) : bed.database.url;
  return workers.launch({ database, executorId, pollInterval: 20, lease });
}

async function expectEnd(workflowId: string, status: 'SUCCESS' | 'BLOCKED', bodies: number): Promise<void> {
  const query = 'SELECT status, attention FROM holdfast.workflow_status WHERE workflow_id = $1';
  const find = async () => (await bed.sql.query(query, [workflowId])).rows[0] as { status: string; attention: string };
  await waitUntil(async () => (await find()).status === status, `${workflowId} is ${status}`);
  if (status === 'BLOCKED') expect((await find()).attention).toBe('OUTCOME_UNKNOWN');
  expect(workers.runsOf(workflowId)).toHaveLength(bodies);
  const outcomes = await bed.sql.query('SELECT FROM holdfast.workflow_outcome WHERE workflow_id = $1', [workflowId]);
  expect(outcomes.rowCount).toBe(status === 'SUCCESS' ? 1 : 0);
}

/** What comes of a process that dies at this point: with `reconcile`, and with `atMostOnce` alone. */
const KILLS: readonly [
  point: string,
  at: RegExp,
  fault: ProxyFault,
  once: 'SUCCESS' | 'BLOCKED',
  onceBodies: number,
][] = [
  ['before the server got the intent', INTENT, { do: 'black-hole' }, 'SUCCESS', 1],
  [
    'after the intent was committed, before its reply',
    INTENT,
    { do: 'black-hole', afterForwarding: true },
    'BLOCKED',
    0,
  ],
  ['after the body, before the server got the record', RECORD, { do: 'black-hole' }, 'BLOCKED', 1],
  [
    'after the record was committed, before its reply',
    RECORD,
    { do: 'black-hole', afterForwarding: true },
    'SUCCESS',
    1,
  ],
];

const proofOf = (at: RegExp): string => (at === INTENT ? 'step_intent' : 'step_result');

async function killAt(name: Name, at: RegExp, fault: ProxyFault): Promise<string> {
  const workflowId = idOf(name);
  const victim = await launch(`killed ${workflowId}`, { viaProxy: true });
  const held = proxy.arm(fault, ({ sql }) => at.test(sql));
  void victim.start(name, workflowId).catch(() => undefined);
  await held.happened;
  if (fault.do === 'black-hole' && fault.afterForwarding === true) {
    const query = `SELECT FROM holdfast.${proofOf(at)} WHERE workflow_id = $1`;
    await waitUntil(async () => (await bed.sql.query(query, [workflowId])).rowCount === 1, 'it is committed');
  }
  await victim.kill();
  held.disarm();
  await bed.expireLease(`killed ${workflowId}`);
  await launch(`survivor ${workflowId}`);
  return workflowId;
}

test.each(KILLS)('with reconcile, killed %s: charged once', async (_, at, fault) => {
  await expectEnd(await killAt('charging', at, fault), 'SUCCESS', 1);
});

test.each(KILLS)('atMostOnce, killed %s: never charged twice', async (_, at, fault, status, bodies) => {
  await expectEnd(await killAt('once', at, fault), status, bodies);
});

test.each([
  ['charging', 'SUCCESS'],
  ['once', 'BLOCKED'],
] as const)('%s, killed in the body: the body is not begun again', async (name, status) => {
  const workflowId = idOf(name);
  const victim = await launch(`killed ${workflowId}`);
  const body = victim.hold(idempotencyKey(workflowId, 0, 'charge'));
  void victim.start(name, workflowId).catch(() => undefined);
  await body.arrived;
  await victim.kill();
  await bed.expireLease(`killed ${workflowId}`);
  await launch(`survivor ${workflowId}`);
  await expectEnd(workflowId, status, 1);
});

test.each([
  ['charging', 'SUCCESS', 1],
  ['once', 'BLOCKED', 0],
] as const)(
  '%s, paused between the intent and its reply for longer than the lease: the body is not begun by two',
  async (name, status, bodies) => {
    const workflowId = idOf(name);
    const victim = await launch(`paused ${workflowId}`, { viaProxy: true, lease: 2_000 });
    const frozen = gate();
    const held = proxy.arm({ do: 'hold', until: frozen.opened }, ({ sql }) => sql.includes('record_intent'));
    void victim.start(name, workflowId).catch(() => undefined);
    await held.happened;
    victim.freeze();
    frozen.open();
    const survivor = await launch(`survivor ${workflowId}`);
    await expectEnd(workflowId, status, bodies);
    victim.thaw();
    if (status === 'SUCCESS') expect(await victim.result(workflowId)).toBe(await survivor.result(workflowId));
    await waitUntil(async () => (await victim.health()).running === 0, 'the paused process has found out');
    await expectEnd(workflowId, status, bodies);
  },
);

test.each(['charging', 'once'] as const)(
  'C9 %s, the reply to the intent is lost: the body is begun once',
  async (name) => {
    const workflowId = idOf(name);
    const worker = await launch(`lossy ${workflowId}`, { viaProxy: true });
    const fault = proxy.arm({ do: 'drop-reply', reset: true }, ({ sql }) => sql.includes('record_intent'));
    await worker.start(name, workflowId);
    expect(await worker.result(workflowId)).toMatch(/^charge #/);
    expect(fault.hits).toBe(1);
    await expectEnd(workflowId, 'SUCCESS', 1);
    expect(workers.runsOf(workflowId, 'question')).toEqual([]);
  },
);
