import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WorkflowStateError } from '../../src/errors/admin-errors.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { type Owned, Protocol } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

let family = 0;
let id: (name: string) => string;
let parent: Owned;
beforeEach(async () => {
  const prefix = `family ${String(family++)} `;
  id = (name) => prefix + name;
  parent = await protocol.start(id('parent'));
});

async function statusOf(name: string): Promise<string> {
  return (await bench.admin.get(id(name))).status;
}
async function verbsOf(name: string): Promise<string[]> {
  return (await bench.admin.audit(id(name))).items.map(({ verb }) => verb);
}

describe('cancel', () => {
  test('takes children along, and theirs, each with its audit row, in one transaction', async () => {
    const child = await protocol.child(parent, { childId: id('child'), seq: 0 });
    const grandchild = await protocol.child(child, { childId: id('grandchild'), seq: 0, kind: 'start' });
    await protocol.child(parent, { childId: id('free'), seq: 1, close: 'abandon' });
    const done = await protocol.child(parent, { childId: id('done'), seq: 2 });
    await protocol.complete(done);

    await bench.admin.cancel(id('parent'), { actor: 'anna', reason: 'enough' });

    for (const name of ['parent', 'child', 'grandchild']) expect(await statusOf(name)).toBe('CANCELLED');
    expect(await statusOf('free')).toBe('PENDING');
    expect(await statusOf('done')).toBe('SUCCESS');
    const [own] = (await bench.admin.audit(id('parent'))).items;
    const [cascaded] = (await bench.admin.audit(id('grandchild'))).items;
    expect(own?.detail).toBeNull();
    expect(cascaded).toMatchObject({
      auditId: own?.auditId,
      actor: 'anna',
      reason: 'enough',
      statusBefore: 'PENDING',
      detail: { cascadedFrom: id('parent'), cascadedBy: 'cancel' },
    });
    expect(await protocol.checkpoint(grandchild, 0)).toBe('lost');
  });

  test('leaves children alone when told to keep them', async () => {
    await protocol.child(parent, { childId: id('child'), seq: 0 });
    await bench.admin.cancel(id('parent'), { children: 'keep' });
    expect(await statusOf('child')).toBe('PENDING');
  });

  test('comes to an end where workflows are their own ancestors, by IDs that were used again', async () => {
    const child = await protocol.child(parent, { childId: id('child'), seq: 0 });
    await bench.query('DELETE FROM @workflow_status WHERE workflow_id = $1::text', [id('parent')]);
    await bench.query('DELETE FROM @workflow_input WHERE workflow_id = $1::text', [id('parent')]);
    await protocol.child(child, { childId: id('parent'), seq: 0 });
    await bench.admin.cancel(id('child'));
    expect([await statusOf('child'), await statusOf('parent')]).toEqual(['CANCELLED', 'CANCELLED']);
  });

  test('a stale execution of the parent creates no child afterwards', async () => {
    await bench.admin.cancel(id('parent'));
    const before = await bench.snapshot();
    await expect(protocol.child(parent, { childId: id('late'), seq: 0 })).rejects.toThrow('lost');
    expect(await bench.snapshot()).toBe(before);
  });
});

describe('resume', () => {
  test('takes along the children that were cancelled and have not given their outcome', async () => {
    const recorded = await protocol.child(parent, { childId: id('recorded'), seq: 0 });
    await bench.admin.cancel(recorded.workflowId);
    await protocol.checkpoint(parent, 0, { kind: 'workflow', childId: id('recorded') });
    const child = await protocol.child(parent, { childId: id('child'), seq: 1 });
    await protocol.child(child, { childId: id('grandchild'), seq: 0 });
    await protocol.child(parent, { childId: id('handle'), seq: 2, kind: 'start' });
    await protocol.child(parent, { childId: id('asked'), seq: 3, kind: 'start' });
    await protocol.checkpoint(parent, 4, { kind: 'outcome', childId: id('asked') });

    await bench.admin.cancel(id('parent'));
    expect(await bench.admin.resume(id('parent'))).toMatchObject({ result: 'done', statusAfter: 'ENQUEUED' });

    for (const name of ['parent', 'child', 'grandchild', 'handle']) expect(await statusOf(name)).toBe('ENQUEUED');
    for (const name of ['recorded', 'asked']) expect(await statusOf(name)).toBe('CANCELLED');
    expect(await verbsOf('grandchild')).toEqual(['resume', 'cancel']);
  });
});

test('a family of 10,000 is cancelled and resumed in seconds, on tables that were never analysed', async () => {
  const parameters = [id('parent'), id('many ')];
  await bench.query(
    `INSERT INTO @workflow_status (workflow_id, name, status, record_version, max_attempts, created_at, updated_at,
                                   parent_id, parent_seq, parent_close)
     SELECT $2::text || n, 'child', 'SUSPENDED', 1, 1, now(), now(), $1::text, n, 'cancel' FROM generate_series(0, 9999) n`,
    parameters,
  );
  await bench.query(
    `INSERT INTO @step_intent (workflow_id, seq, name, kind, child_id, record_version, epoch, nonce, recorded_at)
     SELECT $1::text, n, 'child', 'workflow', $2::text || n, n + 2, 1, gen_random_uuid(), now()
       FROM generate_series(0, 9999) n`,
    parameters,
  );
  await bench.query(
    `INSERT INTO @step_result (workflow_id, seq, name, kind, output, attempts, child_id, record_version, epoch, nonce,
                               started_at, completed_at)
     SELECT $1::text, 10000 + n, 'result', 'outcome', '1', 1, $2::text || 'other ' || n, 10002 + n, 1,
            gen_random_uuid(), now(), now()
       FROM generate_series(0, 9999) n`,
    parameters,
  );
  const countOf = async (status: string): Promise<number> => {
    const [row] = await bench.query<{ count: number }>(
      'SELECT count(*)::int4 AS count FROM @workflow_status WHERE parent_id = $1::text AND status = $2::text',
      [id('parent'), status],
    );
    return row?.count ?? -1;
  };
  await bench.admin.cancel(id('parent'));
  expect(await countOf('CANCELLED')).toBe(10_000);
  await bench.admin.resume(id('parent'));
  expect(await countOf('ENQUEUED')).toBe(10_000);
}, 20_000);

describe('rewind', () => {
  test('C69 cancels the children of removed steps, and leaves the others as they are', async () => {
    const kept = await protocol.child(parent, { childId: id('kept'), seq: 0, kind: 'start' });
    await protocol.checkpoint(parent, 1);
    const removed = await protocol.child(parent, { childId: id('removed'), seq: 2 });
    await protocol.child(removed, { childId: id('below'), seq: 0 });
    await protocol.child(parent, { childId: id('free'), seq: 3, close: 'abandon' });
    const ended = await protocol.child(parent, { childId: id('ended'), seq: 4 });
    await protocol.complete(ended);

    expect(await bench.admin.rewind(id('parent'), { toStep: 2 })).toMatchObject({ result: 'done' });

    expect(await statusOf('parent')).toBe('ENQUEUED');
    expect(await statusOf('kept')).toBe('PENDING');
    expect(await statusOf('removed')).toBe('CANCELLED');
    expect(await statusOf('below')).toBe('CANCELLED');
    expect(await statusOf('free')).toBe('PENDING');
    expect(await statusOf('ended')).toBe('SUCCESS');
    expect((await bench.admin.audit(id('removed'))).items[0]?.detail).toEqual({
      cascadedFrom: id('parent'),
      cascadedBy: 'rewind',
    });
    expect((await bench.admin.steps(id('parent'))).items.map(({ seq }) => seq)).toEqual([0, 1]);
    expect(await protocol.checkpoint(kept, 0)).toBeNull();

    // The next run has the step again, with a child of its own.
    const next = await protocol.claim(id('parent'));
    if (next === null) throw new Error('The rewound workflow cannot be claimed.');
    await protocol.child(next, { childId: id('second removed'), seq: 2 });
    expect(await statusOf('second removed')).toBe('PENDING');
    // What the first run started is no child of the second one: resuming it later does not bring that back.
    await bench.admin.cancel(id('parent'));
    await bench.admin.resume(id('parent'));
    expect(await statusOf('removed')).toBe('CANCELLED');
    expect(await statusOf('second removed')).toBe('ENQUEUED');
  });

  test('C69 of a cancelled workflow brings back the children that its remaining steps wait for', async () => {
    await protocol.child(parent, { childId: id('waited for'), seq: 0 });
    await protocol.child(parent, { childId: id('removed'), seq: 1 });
    await bench.admin.cancel(id('parent'));
    await bench.admin.rewind(id('parent'), { toStep: 1 });
    expect(await statusOf('waited for')).toBe('ENQUEUED');
    expect(await statusOf('removed')).toBe('CANCELLED');
  });
});

describe('delete', () => {
  test.each(['workflow', 'start'] as const)('C71 keeps a child that a live parent may ask for (%s)', async (kind) => {
    const child = await protocol.child(parent, { childId: id('child'), seq: 0, kind });
    await protocol.complete(child);
    const before = await bench.snapshot();
    await expect(bench.admin.delete(id('child'))).rejects.toBeInstanceOf(WorkflowStateError);
    expect(await bench.snapshot()).toBe(before);

    await protocol.checkpoint(parent, kind === 'start' ? 1 : 0, { kind, childId: id('child') });
    expect(await bench.admin.delete(id('child'))).toMatchObject({ result: 'done', statusAfter: null });
  });

  test('C71 keeps a child that somebody else than its parent awaits: an attached parent, a fork', async () => {
    const child = await protocol.child(parent, { childId: id('child'), seq: 0 });
    await protocol.complete(child);
    const attached = await protocol.start(id('attached'));
    await protocol.child(attached, { childId: id('child'), seq: 0 });
    await bench.admin.fork(id('parent'), { fromStep: 1, workflowId: id('fork') });
    await protocol.complete(parent);
    await protocol.complete(attached);
    await expect(bench.admin.delete(id('child'))).rejects.toThrow(id('fork'));
    await bench.admin.cancel(id('fork'));
    expect(await bench.admin.delete(id('child'))).toMatchObject({ result: 'done' });
  });

  test('by force deletes an awaited child, and cancels the children of a live one', async () => {
    const child = await protocol.child(parent, { childId: id('child'), seq: 0 });
    await protocol.child(child, { childId: id('grandchild'), seq: 0 });
    await protocol.child(child, { childId: id('free'), seq: 1, close: 'abandon' });
    await bench.admin.delete(id('child'), { force: true });
    await expect(bench.admin.get(id('child'))).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    expect(await statusOf('grandchild')).toBe('CANCELLED');
    expect(await statusOf('free')).toBe('PENDING');
    expect((await bench.admin.audit(id('child'))).items[0]?.detail).toEqual({ force: true, awaitedBy: id('parent') });
  });

  test('C71 a workflow that takes the ID afterwards replays nothing old', async () => {
    await protocol.checkpoint(parent, 0);
    await protocol.sleep(parent, 1, 1_000);
    await protocol.complete(parent);
    await bench.admin.delete(id('parent'));
    await protocol.start(id('parent'));
    expect((await bench.admin.steps(id('parent'))).items).toEqual([]);
    expect((await bench.admin.get(id('parent'), { payload: true })).output).toBeUndefined();
  });
});
