import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
const bodies = new Map<string, number>();
const cleanups: string[] = [];

function count(key: string): number {
  const ran = (bodies.get(key) ?? 0) + 1;
  bodies.set(key, ran);
  return ran;
}

const nap = defineWorkflow('nap', async (key: string, ms: number): Promise<string> => {
  await runStep('before', async () => Promise.resolve(count(`${key} before`)));
  try {
    await sleep(ms);
  } finally {
    cleanups.push(key);
  }
  await runStep('after', async () => Promise.resolve(count(`${key} after`)));
  return key;
});
const childGate = gate();
const slowChild = defineWorkflow('slowChild', async (): Promise<string> => {
  return runStep('wait', async () => {
    await childGate.opened;
    return 'from the child';
  });
});
const parent = defineWorkflow('parent', async (): Promise<string> => `got ${await slowChild()}`);
const asker = defineWorkflow('asker', async (workflowId: string): Promise<unknown> => {
  try {
    return await current.handle(workflowId).result();
  } catch (error) {
    return error instanceof Error ? error.name : error;
  }
});
let current: Holdfast;

const workflows = [nap, slowChild, parent, asker];

async function statusOf(workflowId: string): Promise<string> {
  const { rows } = await bed.sql.query<{ status: string }>(
    'SELECT status FROM holdfast.workflow_status WHERE workflow_id = $1',
    [workflowId],
  );
  return rows[0]?.status ?? 'none';
}

async function suspended(workflowId: string): Promise<void> {
  await waitUntil(async () => (await statusOf(workflowId)) === 'SUSPENDED', `${workflowId} is suspended`);
}

beforeAll(async () => {
  bed = await createBed();
});
afterAll(async () => {
  await bed.close();
});

describe('a workflow in which everything waits', () => {
  test('is unloaded and claimed again when its time has come, without running a step twice (C20)', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20 });
    const handle = await current.start(nap, { workflowId: 'nap' }, 'nap', 600);
    await suspended('nap');
    await waitUntil(() => current.health().running === 0, 'it is unloaded');
    expect(cleanups, 'no code of the workflow runs because it is unloaded').toEqual([]);
    expect(await handle.result()).toBe('nap');
    expect([bodies.get('nap before'), bodies.get('nap after')]).toEqual([1, 1]);
    const { rows } = await bed.sql.query(
      `SELECT o.ended_how, s.attempts,
              (SELECT r.completed_at >= i.wake_at FROM holdfast.step_result r JOIN holdfast.step_intent i USING (workflow_id, seq)
                WHERE r.workflow_id = 'nap') AS in_time
         FROM holdfast.workflow_status s JOIN holdfast.workflow_ownership o USING (workflow_id)
        WHERE s.workflow_id = 'nap' ORDER BY o.epoch`,
    );
    expect(rows).toEqual([
      { ended_how: 'suspended', attempts: 1, in_time: true },
      { ended_how: 'completed', attempts: 1, in_time: true },
    ]);
    await current.close();
  });

  test('is not unloaded for a wait that ends soon', async () => {
    current = await bed.launch({ workflows, suspendAfter: 400 });
    await (await current.start(nap, { workflowId: 'short' }, 'short', 300)).result();
    const { rows } = await bed.sql.query(`SELECT epoch FROM holdfast.workflow_ownership WHERE workflow_id = 'short'`);
    expect(rows).toHaveLength(1);
    await current.close();
  });

  test('makes room early when executions wait for a slot', async () => {
    current = await bed.launch({ workflows, suspendAfter: '1h', maxConcurrent: 1 });
    await current.start(nap, { workflowId: 'holds the slot' }, 'slot', 3_600_000);
    await suspended('holds the slot');
    await current.close();
  });

  test('is left to others at shutdown when it would wait longer than that takes', async () => {
    current = await bed.launch({ workflows, suspendAfter: 50, shutdownTimeout: '30s' });
    await current.start(nap, { workflowId: 'left' }, 'left', 3_600_000);
    await waitUntil(() => bodies.get('left before') === 1, 'the step has run');
    await current.close();
    expect(await statusOf('left')).toBe('SUSPENDED');
  });
});

describe('a suspended workflow', () => {
  test('is woken by the outcome of its child, whoever runs it, also without notifications (C43)', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20, notifications: false });
    const handle = await current.start(parent, { workflowId: 'parent' });
    await suspended('parent');
    const other = await bed.launch({ workflows, notifications: false });
    childGate.open();
    expect(await handle.result()).toBe('got from the child');
    expect((await bed.sql.query('SELECT FROM holdfast.workflow_wait')).rows).toHaveLength(0);
    await waitUntil(
      async () => (await bed.sql.query('SELECT FROM holdfast.wakeup')).rows.length === 0,
      'the wake-ups are removed',
    );
    await other.close();
    await current.close();
  });

  test('is woken when what it waits for is cancelled', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20 });
    await current.start(nap, { workflowId: 'target 1' }, 'target 1', 3_600_000);
    const handle = await current.start(asker, { workflowId: 'asker 1' }, 'target 1');
    await suspended('asker 1');
    await suspended('target 1');
    await current.admin.cancel('target 1');
    expect(await handle.result()).toBe('WorkflowCancelledError');
    await current.close();
  });

  test('is woken when what it waits for is deleted', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20 });
    await current.start(nap, { workflowId: 'target 2' }, 'target 2', 3_600_000);
    const handle = await current.start(asker, { workflowId: 'asker 2' }, 'target 2');
    await suspended('asker 2');
    await current.admin.delete('target 2', { force: true });
    expect(await handle.result()).toBe('WorkflowNotFoundError');
    await current.close();
  });

  test('times out at its deadline', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20 });
    const handle = await current.start(nap, { workflowId: 'late', timeout: 3_000 }, 'late', 3_600_000);
    await suspended('late');
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
    await current.close();
  });

  test('ends promptly when it is cancelled (C15)', async () => {
    current = await bed.launch({ workflows, suspendAfter: 20 });
    const handle = await current.start(nap, { workflowId: 'cancelled' }, 'cancelled', 3_600_000);
    await suspended('cancelled');
    await current.admin.cancel('cancelled');
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await current.close();
  });

  test('that is woken a hundred times is claimed once, and goes on waiting', async () => {
    current = await bed.launch({ workflows, suspendAfter: 200 });
    await current.start(nap, { workflowId: 'woken' }, 'woken', 3_600_000);
    await suspended('woken');
    await bed.sql.query(`SELECT holdfast.wake_up(ARRAY['woken']) FROM generate_series(1, 100)`);
    await waitUntil(async () => (await statusOf('woken')) === 'PENDING', 'it is claimed');
    await suspended('woken');
    const { rows } = await bed.sql.query(`SELECT epoch FROM holdfast.workflow_ownership WHERE workflow_id = 'woken'`);
    expect(rows).toHaveLength(2);
    expect(bodies.get('woken before')).toBe(1);
    await current.close();
  });
});
