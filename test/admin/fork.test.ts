import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StepNotFoundError, WorkflowExistsError, WorkflowNotFoundError } from '../../src/errors/admin-errors.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { Protocol, STATUSES } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

/** The record in the order of replay. */
async function recordOf(workflowId: string): Promise<unknown> {
  return bench.query(
    `SELECT seq, name, kind, complete, output, error, child_id, record_version::int4 AS version
       FROM @load_history(ARRAY[$1::text])`,
    [workflowId],
  );
}

async function rowsOf(workflowId: string): Promise<string> {
  const rows = await bench.query(
    `SELECT s::text AS status, i::text AS input, o::text AS outcome,
            (SELECT json_agg(r ORDER BY seq)::text FROM @step_result r WHERE r.workflow_id = s.workflow_id) AS results,
            (SELECT json_agg(t ORDER BY seq)::text FROM @step_intent t WHERE t.workflow_id = s.workflow_id) AS intents
       FROM @workflow_status s
       LEFT JOIN @workflow_input i USING (workflow_id)
       LEFT JOIN @workflow_outcome o USING (workflow_id)
      WHERE s.workflow_id = $1::text`,
    [workflowId],
  );
  return JSON.stringify(rows);
}

describe('C68 fork', () => {
  test.each(STATUSES)('of a workflow that is %s leaves it untouched and goes on from the step', async (status) => {
    const owned = await protocol.inStatus(status, status);
    const before = await rowsOf(status);
    const to = `${status} fork`;
    expect(await bench.admin.fork(status, { fromStep: 2, workflowId: to })).toEqual({ workflowId: to });
    expect(await rowsOf(status)).toBe(before);

    const source = await bench.admin.get(status, { payload: true });
    expect(await bench.admin.get(to, { payload: true })).toMatchObject({
      name: 'work',
      status: 'ENQUEUED',
      forkedFrom: status,
      epoch: 0,
      attempts: 0,
      recordVersion: 3,
      parent: null,
      appVersion: 'v1',
      timeoutMs: 60_000,
      attributes: { tenant: 'a' },
      maxAttempts: source.maxAttempts,
      input: source.input,
    });
    expect((await bench.admin.steps(to)).items).toMatchObject([
      { seq: 0, complete: true, epoch: 0, recordVersion: 1 },
      { seq: 1, complete: true, epoch: 0, recordVersion: 2 },
    ]);
    const next = await protocol.claim(to);
    expect(next).toMatchObject({ epoch: 1, version: 4 });
    if (status === 'PENDING') expect(await protocol.checkpoint(owned, 4)).toBeNull();
  });

  test('keeps the order in which parallel steps were recorded, and shares the child that is waited for', async () => {
    const owned = await protocol.start('parallel');
    await protocol.child(owned, { childId: 'shared', seq: 2 });
    await protocol.checkpoint(owned, 3);
    await protocol.checkpoint(owned, 0);
    await protocol.sleep(owned, 1, 60_000);
    await protocol.checkpoint(owned, 1, { kind: 'sleep' });
    await protocol.checkpoint(owned, 4);
    await bench.admin.fork('parallel', { fromStep: 4, workflowId: 'parallel fork' });
    expect(await recordOf('parallel fork')).toMatchObject([
      { seq: 2, complete: false, child_id: 'shared', version: 1 },
      { seq: 3, complete: true, version: 2 },
      { seq: 0, complete: true, version: 3 },
      { seq: 1, complete: true, version: 4 },
    ]);
    const next = await protocol.claim('parallel fork');
    if (next === null) throw new Error('The fork cannot be claimed.');
    expect(await protocol.checkpoint(next, 2, { kind: 'workflow', childId: 'shared' })).toBeNull();
  });

  test('runs on the app version that is given', async () => {
    await protocol.inStatus('deployed', 'BLOCKED');
    await bench.admin.fork('deployed', { fromStep: 0, workflowId: 'deployed fork', appVersion: 'v2' });
    expect(await protocol.claim('deployed fork', 'v1')).toBeNull();
    expect((await bench.admin.get('deployed fork')).appVersion).toBe('v2');
  });

  test('at a step that does not exist is refused, and nothing is written', async () => {
    await protocol.inStatus('short', 'SUCCESS');
    const before = await bench.snapshot();
    for (const fromStep of [5, -1, 2 ** 31, -(2 ** 40), Number.MAX_SAFE_INTEGER]) {
      await expect(bench.admin.fork('short', { fromStep })).rejects.toBeInstanceOf(StepNotFoundError);
      await expect(bench.admin.rewind('short', { toStep: fromStep })).rejects.toBeInstanceOf(StepNotFoundError);
    }
    await expect(bench.admin.fork('nowhere', { fromStep: 0 })).rejects.toBeInstanceOf(WorkflowNotFoundError);
    expect(await bench.snapshot()).toBe(before);
    await bench.admin.fork('short', { fromStep: 4, workflowId: 'whole' });
    expect((await bench.admin.steps('whole')).items).toHaveLength(4);
  });

  test('to an ID that is taken is refused, and nothing is written', async () => {
    await protocol.inStatus('source', 'SUCCESS');
    await protocol.start('taken');
    const before = await bench.snapshot();
    for (const workflowId of ['taken', 'source']) {
      await expect(bench.admin.fork('source', { fromStep: 0, workflowId })).rejects.toBeInstanceOf(WorkflowExistsError);
    }
    expect(await bench.snapshot()).toBe(before);
  });

  test('makes an ID of its own when none is given, and says so in both audits', async () => {
    await protocol.inStatus('unnamed', 'SUCCESS');
    const { workflowId } = await bench.admin.fork('unnamed', { fromStep: 1, actor: 'anna' });
    expect(workflowId).toMatch(/^[\da-f]{8}-[\da-f]{4}-7/);
    expect((await bench.admin.audit('unnamed')).items).toMatchObject([{ detail: { to: workflowId, fromStep: 1 } }]);
    expect((await bench.admin.audit(workflowId)).items).toMatchObject([
      { actor: 'anna', statusBefore: null, statusAfter: 'ENQUEUED', detail: { from: 'unnamed', fromStep: 1 } },
    ]);
  });
});

describe('rewind', () => {
  test.each([0, 1, 2, 3, 4])('to step %i keeps what is before, in its order, and no more', async (toStep) => {
    const workflowId = `rewound to ${String(toStep)}`;
    const owned = await protocol.start(workflowId);
    for (const seq of [1, 0, 3, 2]) await protocol.checkpoint(owned, seq);
    await protocol.complete(owned);
    const before = (await recordOf(workflowId)) as { seq: number }[];
    await bench.admin.rewind(workflowId, { toStep });
    expect(await recordOf(workflowId)).toEqual(before.filter(({ seq }) => seq < toStep));

    const next = await protocol.claim(workflowId);
    if (next === null) throw new Error('The rewound workflow cannot be claimed.');
    for (let seq = toStep; seq < 4; seq++) expect(await protocol.checkpoint(next, seq)).toBeNull();
    expect(await protocol.complete(next)).toBeNull();
  });

  test('C19 discards the late result of a step that ran when it came', async () => {
    const owned = await protocol.start('late');
    await protocol.checkpoint(owned, 0);
    await bench.admin.rewind('late', { toStep: 0 });
    const next = await protocol.claim('late');
    const before = await bench.snapshot();
    expect(await protocol.checkpoint(owned, 0)).toBe('lost');
    expect(await bench.snapshot()).toBe(before);
    expect(next?.epoch).toBe(2);
  });
});
