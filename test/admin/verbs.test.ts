import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkflowStatus } from '../../src/api/workflow-handle.js';
import { WorkflowStateError } from '../../src/errors/admin-errors.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { LIVE, Protocol, STATUSES } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;

beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

type Effect = WorkflowStatus | 'unchanged' | 'refused' | 'gone';

/** The table of docs/admin.md. */
const TABLE: Readonly<Record<string, Readonly<Record<WorkflowStatus, Effect>>>> = {
  cancel: {
    ENQUEUED: 'CANCELLED',
    DELAYED: 'CANCELLED',
    PENDING: 'CANCELLED',
    SUSPENDED: 'CANCELLED',
    BLOCKED: 'CANCELLED',
    SUCCESS: 'unchanged',
    ERROR: 'unchanged',
    CANCELLED: 'unchanged',
    DEAD_LETTER: 'unchanged',
  },
  resume: {
    ENQUEUED: 'unchanged',
    DELAYED: 'ENQUEUED',
    PENDING: 'unchanged',
    SUSPENDED: 'ENQUEUED',
    BLOCKED: 'ENQUEUED',
    SUCCESS: 'refused',
    ERROR: 'refused',
    CANCELLED: 'ENQUEUED',
    DEAD_LETTER: 'ENQUEUED',
  },
  rewind: Object.fromEntries(STATUSES.map((status) => [status, 'ENQUEUED'])) as Record<WorkflowStatus, Effect>,
  delete: Object.fromEntries(STATUSES.map((status) => [status, LIVE.includes(status) ? 'refused' : 'gone'])) as Record<
    WorkflowStatus,
    Effect
  >,
  'delete by force': Object.fromEntries(STATUSES.map((status) => [status, 'gone'])) as Record<WorkflowStatus, Effect>,
};

function act(
  verb: string,
  workflowId: string,
): Promise<{ readonly result: string; readonly statusAfter: string | null }> {
  const by = { actor: 'anna', reason: 'as the table says' };
  switch (verb) {
    case 'cancel':
      return bench.admin.cancel(workflowId, by);
    case 'resume':
      return bench.admin.resume(workflowId, by);
    case 'rewind':
      return bench.admin.rewind(workflowId, { ...by, toStep: 2 });
    case 'delete':
      return bench.admin.delete(workflowId, by);
    default:
      return bench.admin.delete(workflowId, { ...by, force: true });
  }
}

describe.each(Object.keys(TABLE))('%s', (verb) => {
  test.each(STATUSES)('does to a workflow that is %s what the table says', async (status) => {
    const workflowId = `${verb} ${status}`;
    const owned = await protocol.inStatus(workflowId, status);
    const effect = TABLE[verb]?.[status];
    const before = await bench.snapshot();
    const [{ version = 0 } = {}] = await bench.query<{ version: number }>(
      'SELECT record_version::float8 AS version FROM @workflow_status WHERE workflow_id = $1::text',
      [workflowId],
    );

    if (effect === 'refused') {
      await expect(act(verb, workflowId)).rejects.toSatisfy(
        (error) => error instanceof WorkflowStateError && error.status === status && error.verb === verb,
      );
      expect(await bench.snapshot()).toBe(before);
      return;
    }
    if (effect === 'unchanged') {
      expect(await act(verb, workflowId)).toEqual({
        workflowId,
        result: 'unchanged',
        statusBefore: status,
        statusAfter: status,
      });
      expect(await bench.snapshot()).toBe(before);
      return;
    }

    const statusAfter = effect === 'gone' ? null : effect;
    expect(await act(verb, workflowId)).toEqual({ workflowId, result: 'done', statusBefore: status, statusAfter });
    const [entry] = (await bench.admin.audit(workflowId)).items;
    expect(entry).toMatchObject({
      verb: verb.split(' ')[0],
      actor: 'anna',
      reason: 'as the table says',
      statusBefore: status,
      statusAfter,
    });
    await expectWhole(workflowId, effect ?? 'gone');

    if (effect !== 'gone') {
      const found = await bench.admin.get(workflowId, { payload: true });
      expect(found).toMatchObject({ status: effect, recordVersion: version + 1, attention: null, wakeAt: null });
      if (effect === 'ENQUEUED') expect(found).toMatchObject({ attempts: 0, completedAt: null });
      else expect(found.error).toEqual({ readable: true, value: 'cancelled' });
    }
    // Whatever an execution that had it still wants to write changes nothing.
    const after = await bench.snapshot();
    expect(await protocol.checkpoint(owned, 4)).toBe(effect === 'gone' ? 'missing' : 'lost');
    expect(await protocol.complete(owned)).toBe(effect === 'gone' ? 'missing' : 'lost');
    expect(await bench.snapshot()).toBe(after);
  });
});

/** An outcome exactly for terminal states, ownership open exactly while owned, and nothing of what is gone but its audit. */
async function expectWhole(workflowId: string, effect: Effect): Promise<void> {
  const count = async (table: string, condition = 'true'): Promise<number> => {
    const [row] = await bench.query<{ count: number }>(
      `SELECT count(*)::int4 AS count FROM @${table} WHERE workflow_id = $1::text AND ${condition}`,
      [workflowId],
    );
    return row?.count ?? -1;
  };
  expect(await count('workflow_ownership', 'ended_at IS NULL')).toBe(0);
  expect(await count('workflow_outcome')).toBe(effect === 'CANCELLED' ? 1 : 0);
  if (effect === 'gone') {
    for (const table of ['workflow_status', 'workflow_input', 'step_result', 'step_intent', 'workflow_ownership']) {
      expect(await count(table), table).toBe(0);
    }
  }
}
