import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RepairRequest, StepRepair } from '../../src/admin/admin-requests.js';
import type { WorkflowStatus } from '../../src/api/workflow-handle.js';
import type { Driver } from '../../src/drivers/driver.js';
import { ConnectionLostError } from '../../src/errors/database-errors.js';
import { PostgresAdminStore } from '../../src/store/postgres/postgres-admin-store.js';
import { encodeValue } from '../../src/values/index.js';
import { tableRows } from '../docs/markdown.js';
import { type AdminBench, adminOn, openAdminBench, SCHEMA } from './support/admin-bench.js';
import { Protocol, STATUSES, type Owned } from './support/protocol.js';

// Repair by hand of step 1, after step 0 has its result.

let bench: AdminBench;
let protocol: Protocol;
let count = 0;

beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

async function write(owned: Owned, call: string, values: readonly (string | number | null)[]): Promise<void> {
  const [row] = await bench.query<{ answer: string | null }>(call, [
    owned.workflowId,
    owned.token,
    owned.version,
    randomUUID(),
    ...values,
  ]);
  if (row !== undefined && row.answer !== null) throw new Error(row.answer);
  owned.version += 1;
}

const intend = (owned: Owned, seq: number, kind = 'step'): Promise<void> =>
  write(
    owned,
    `SELECT answer FROM @record_intent($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, 'charge', $6::text, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
    [seq, kind],
  );

const fail = (owned: Owned, seq: number): Promise<void> =>
  write(
    owned,
    `SELECT answer FROM @checkpoint_one($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, 'charge', 'step', NULL, $6::text,
       3, NULL, NULL, 5)`,
    [seq, encodeValue('declined')],
  );

type StepState = 'unknown' | 'failed';

async function inStatus(step: StepState, status: WorkflowStatus): Promise<string> {
  const workflowId = `${step} ${status} ${String(++count)}`;
  const owned = await protocol.start(workflowId, { maxAttempts: status === 'DEAD_LETTER' ? 1 : 100 });
  await protocol.checkpoint(owned, 0);
  await (step === 'unknown' ? intend(owned, 1) : fail(owned, 1));
  await end(owned, status);
  return workflowId;
}

async function end(owned: Owned, status: WorkflowStatus): Promise<void> {
  switch (status) {
    case 'PENDING':
      return;
    case 'SUCCESS':
    case 'ERROR':
      await protocol.complete(owned, status);
      return;
    case 'CANCELLED':
      await bench.admin.cancel(owned.workflowId);
      return;
    case 'DEAD_LETTER':
      await protocol.release(owned, 'ENQUEUED');
      await protocol.claim(owned.workflowId);
      return;
    default:
      await protocol.release(owned, status);
  }
}

async function withLapsedLease(act: () => Promise<void>): Promise<void> {
  await bench.query(`UPDATE @executor SET lease_until = lease_until - interval '1 year'`);
  try {
    await act();
  } finally {
    await bench.query(`UPDATE @executor SET lease_until = lease_until + interval '1 year'`);
  }
}

const charged: StepRepair = { happened: true, result: 'charged' };
const repair = (workflowId: string, request: Partial<RepairRequest> = {}) =>
  bench.admin.repairStep(workflowId, { seq: 1, repair: charged, actor: 'anna', reason: 'asked the bank', ...request });

describe('every status', () => {
  /** The documentation's table is the specification. */
  const rows = tableRows('docs/admin.md', '### repairStep in every status').slice(1);

  test('the table has all of them', () => {
    expect(rows.map(([status]) => status)).toEqual([
      ...STATUSES.map((status) => `\`${status}\``).flatMap((status) =>
        status === '`PENDING`' ? ['`PENDING`, lease alive', '`PENDING`, lease expired'] : [status],
      ),
    ]);
  });

  const cases = rows.flatMap(([status = '', unknown = '', resumed = '', failed = '']) => [
    [status, 'unknown', false, unknown] as const,
    [status, 'unknown', true, resumed] as const,
    [status, 'failed', false, failed] as const,
  ]);

  test.each(cases)('%s, step %s, resume %s: %s', async (label, step, resume, effect) => {
    const status = /^`(\w+)`/.exec(label)?.[1] as WorkflowStatus;
    const workflowId = await inStatus(step, status);
    const act = async (): Promise<void> => {
      const before = await bench.snapshot();
      if (effect.startsWith('refused')) {
        const error: unknown = await repair(workflowId, { resume }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'WORKFLOW_STATE', status });
        expect(await bench.snapshot()).toBe(before);
        return;
      }
      const statusAfter = effect === 'unchanged' ? status : effect.replaceAll('`', '');
      expect(await repair(workflowId, { resume })).toEqual({
        workflowId,
        result: 'done',
        statusBefore: status,
        statusAfter,
      });
      const details = await bench.admin.get(workflowId, { payload: true });
      expect(details.status).toBe(statusAfter);
      expect('output' in details || 'error' in details).toBe(
        ['SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'].includes(statusAfter),
      );
      const { items } = await bench.admin.steps(workflowId, { payload: true });
      expect(items[1]).toMatchObject({ seq: 1, name: 'charge', complete: true, output: { value: 'charged' } });
      const [entry] = (await bench.admin.audit(workflowId)).items;
      expect(entry).toMatchObject({ verb: 'repair', actor: 'anna', reason: 'asked the bank', statusAfter });
      expect(entry?.detail).toMatchObject({ seq: 1, step: 'charge', repair: 'result' });
      expect((await bench.admin.ownership(workflowId)).items.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    };
    await (label.includes('expired') ? withLapsedLease(act) : act());
  });
});

test.each<[string, StepRepair, Record<string, unknown> | undefined]>([
  ['happened', charged, { complete: true, attempts: 1, output: { value: 'charged' } }],
  [
    'failed',
    { failed: true, error: new Error('declined') },
    { complete: true, error: { value: { message: 'declined' } } },
  ],
  ['skip', { skip: true }, { complete: true, attempts: 0, output: { value: undefined } }],
  ['skip with a value', { skip: true, result: 7 }, { complete: true, attempts: 0, output: { value: 7 } }],
  ['didNotHappen', { didNotHappen: true }, undefined],
  ['retry', { retry: true }, undefined],
])('%s is recorded as what it says', async (_, said, recorded) => {
  for (const step of ['unknown', 'failed'] as const) {
    const workflowId = await inStatus(step, 'BLOCKED');
    await repair(workflowId, { repair: said });
    const { items } = await bench.admin.steps(workflowId, { payload: true });
    expect(items).toHaveLength(recorded === undefined ? 1 : 2);
    if (recorded !== undefined) {
      const expected = step === 'failed' && recorded['attempts'] === 1 ? { ...recorded, attempts: 3 } : recorded;
      expect(items[1]).toMatchObject(expected);
    }
  }
});

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['two things', { happened: true, result: 1, retry: true }],
  ['something that is not there', { gone: true }],
  ['that it happened, without a result', { happened: true }],
  ['that it failed, without an error', { failed: true }],
  ['that it did not not happen', { didNotHappen: false }],
  ['more than it should', { retry: true, result: 1 }],
  ['a key of every object', { constructor: true }],
])('%s is no repair', async (_, said) => {
  const workflowId = await inStatus('unknown', 'BLOCKED');
  const before = await bench.snapshot();
  await expect(repair(workflowId, { repair: said as StepRepair })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(await bench.snapshot()).toBe(before);
});

test('what cannot be stored, or is not there, or is no open step, is refused before anything is written', async () => {
  const workflowId = 'refusals';
  const owned = await protocol.start(workflowId);
  await protocol.checkpoint(owned, 0);
  await fail(owned, 1);
  await protocol.checkpoint(owned, 2);
  await protocol.sleep(owned, 3, 3_600_000);
  await protocol.release(owned, 'BLOCKED');
  const before = await bench.snapshot();
  const unstorable = { happened: true, result: () => 1 } as const;
  await expect(repair(workflowId, { repair: unstorable })).rejects.toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE' });
  await expect(repair(workflowId, { seq: 0 })).rejects.toMatchObject({ code: 'STEP_RECORDED' });
  await expect(repair(workflowId, { seq: 1 })).rejects.toMatchObject({ code: 'STEP_RECORDED' });
  for (const seq of [3, 4, -1, 2 ** 40]) {
    await expect(repair(workflowId, { seq })).rejects.toMatchObject({ code: 'STEP_NOT_FOUND' });
  }
  await expect(repair('nobody')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  await expect(repair(workflowId, { seq: 0.5 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(await bench.snapshot()).toBe(before);
});

test('a failure is not overtaken by what was recorded before it under a higher number', async () => {
  const owned = await protocol.start('parallel');
  await protocol.checkpoint(owned, 1);
  await fail(owned, 0);
  await protocol.complete(owned, 'ERROR');
  await repair('parallel', { seq: 0, repair: { retry: true } });
  const { items } = await bench.admin.steps('parallel');
  expect(items.map(({ seq }) => seq)).toEqual([1]);
  expect((await bench.admin.get('parallel')).status).toBe('ENQUEUED');
});

test.each(['CANCELLED', 'ERROR', 'SUCCESS'] as const)(
  'a %s workflow is listed for attention until what became of all its steps is recorded',
  async (status) => {
    const owned = await protocol.start(`listed ${status}`);
    await intend(owned, 0);
    await intend(owned, 1);
    if (status === 'CANCELLED') await bench.admin.cancel(owned.workflowId);
    else {
      const text = encodeValue('done');
      const values = status === 'SUCCESS' ? [status, text, null] : [status, null, text];
      await bench.query(
        `SELECT answer FROM @complete_batch(ARRAY[$1::text], ARRAY[$2::uuid], ARRAY[$3::int8], ARRAY[$4::uuid],
           ARRAY[$5::text], ARRAY[$6::text], ARRAY[$7::text], ARRAY['OUTCOME_UNKNOWN'])`,
        [owned.workflowId, owned.token, owned.version, randomUUID(), ...values],
      );
    }
    const attention = async () => (await bench.admin.get(owned.workflowId)).attention;
    expect(await attention()).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect((await attention())?.detail).toMatch(/step "charge" \(number 0\), step "charge" \(number 1\)/);
    await repair(owned.workflowId, { seq: 0 });
    expect((await attention())?.detail).toMatch(/what became of: step "charge" \(number 1\)\./);
    await repair(owned.workflowId, { seq: 1, repair: { didNotHappen: true } });
    expect(await attention()).toBeNull();
    expect((await bench.admin.get(owned.workflowId)).status).toBe(status);
  },
);

test('an execution that believes in a step left behind, whose result was recorded in the end, raises no attention', async () => {
  const owned = await protocol.start('in the end');
  await intend(owned, 0);
  await protocol.checkpoint(owned, 0);
  await bench.query(
    `SELECT answer FROM @complete_batch(ARRAY[$1::text], ARRAY[$2::uuid], ARRAY[$3::int8], ARRAY[$4::uuid],
       ARRAY['SUCCESS'], ARRAY[$5::text], ARRAY[NULL::text], ARRAY['OUTCOME_UNKNOWN'])`,
    [owned.workflowId, owned.token, owned.version, randomUUID(), encodeValue(1)],
  );
  expect((await bench.admin.get('in the end')).attention).toBeNull();
});

test('the execution that a repair of an expired one has fenced writes nothing', async () => {
  const owned = await protocol.start('fenced');
  await intend(owned, 0);
  await withLapsedLease(async () => {
    await repair('fenced', { seq: 0 });
  });
  expect(await protocol.checkpoint(owned, 0)).toBe('lost');
  const next = await protocol.claim('fenced');
  expect(next?.epoch).toBe(2);
});

test('rewind, fork, delete: an intent goes with its step, stays with its workflow, and goes with it', async () => {
  const workflowId = await inStatus('unknown', 'BLOCKED');
  const { workflowId: fork } = await bench.admin.fork(workflowId, { fromStep: 2 });
  expect((await bench.admin.steps(fork)).items.map(({ seq }) => seq)).toEqual([0]);
  expect((await bench.admin.steps(workflowId)).items.map(({ complete }) => complete)).toEqual([true, false]);
  await bench.admin.rewind(workflowId, { toStep: 2 });
  expect((await bench.admin.steps(workflowId)).items.map(({ complete }) => complete)).toEqual([true, false]);
  await bench.admin.rewind(workflowId, { toStep: 1 });
  expect((await bench.admin.steps(workflowId)).items).toHaveLength(1);
  const gone = await inStatus('unknown', 'CANCELLED');
  await bench.admin.delete(gone);
  expect(await bench.query(`SELECT FROM @step_intent WHERE workflow_id = $1`, [gone])).toEqual([]);
});

describe('a call whose reply was lost', () => {
  function losingReplies(driver: Driver, times: number): Driver {
    let left = times;
    return {
      name: driver.name,
      maxConnections: driver.maxConnections,
      query: async (text, parameters, options) => {
        const rows = await driver.query(text, parameters, options);
        if (left-- > 0) throw new ConnectionLostError('The reply was lost.');
        return rows as never;
      },
      transaction: (body, options) => driver.transaction(body, options),
      listen: (channels, handlers) => driver.listen(channels, handlers),
      close: () => Promise.resolve(),
    };
  }

  test.each([
    [false, 'BLOCKED'],
    [true, 'ENQUEUED'],
  ] as const)('C9 with resume %s: sent again it is the same act', async (resume, statusAfter) => {
    const workflowId = await inStatus('unknown', 'BLOCKED');
    const store = new PostgresAdminStore({ driver: losingReplies(bench.driver, 2), schema: SCHEMA });
    const request = { seq: 1, repair: charged, resume };
    expect(await adminOn(store).repairStep(workflowId, request)).toMatchObject({ result: 'done', statusAfter });
    expect((await bench.admin.audit(workflowId)).items).toHaveLength(1);
    await expect(adminOn(store).repairStep(workflowId, request)).rejects.toMatchObject({ code: 'STEP_RECORDED' });
    await store.close();
  });
});

test('two people who say different things of one step: the first one is believed, the other one is told', async () => {
  const workflowId = await inStatus('unknown', 'BLOCKED');
  const said = await Promise.allSettled([
    repair(workflowId, { repair: { happened: true, result: 'a' } }),
    repair(workflowId, { repair: { happened: true, result: 'b' } }),
  ]);
  expect(said.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const [refused] = said.filter((one) => one.status === 'rejected');
  expect(refused?.reason).toMatchObject({ code: 'STEP_RECORDED' });
});
