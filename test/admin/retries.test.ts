import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Driver } from '../../src/drivers/driver.js';
import { ConnectionLostError, DatabaseError } from '../../src/errors/database-errors.js';
import { PostgresAdminStore } from '../../src/store/postgres/postgres-admin-store.js';
import { type AdminBench, adminOn, CANCELLED_ERROR, openAdminBench, SCHEMA } from './support/admin-bench.js';
import { Protocol } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

/** What each verb is called with after the ID and the nonce. */
const CALLS = {
  cancel: ['cancel_workflow', `'a', NULL, 'cancel', '${CANCELLED_ERROR}'`],
  resume: ['resume_workflow', `'a', NULL`],
  rewind: ['rewind_workflow', `'a', NULL, 1, '${CANCELLED_ERROR}'`],
  fork: ['fork_workflow', `'a', NULL, 1, 'a fork', NULL`],
  delete: ['delete_workflow', `'a', NULL, true, '${CANCELLED_ERROR}'`],
} as const;
type Verb = keyof typeof CALLS;

async function call(verb: Verb, workflowId: string, nonce: string, runner: Pick<AdminBench, 'query'> = bench) {
  const [functionName, rest] = CALLS[verb];
  const [row] = await runner.query<{ result: string; status_before: string | null; status_after: string | null }>(
    `SELECT result, status_before, status_after FROM @${functionName}($1::text, $2::uuid, ${rest})`,
    [workflowId, nonce],
  );
  return row;
}

/** A driver whose replies get lost, after the fact, as often as `times` says. */
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

describe('a call whose reply was lost', () => {
  test.each(['cancel', 'rewind', 'fork', 'delete'] as const)('C9 %s: sent again it answers as before', async (verb) => {
    const workflowId = `again ${verb}`;
    await protocol.inStatus(workflowId, 'PENDING');
    await bench.query(`DELETE FROM @workflow_status WHERE workflow_id = 'a fork'`);
    const nonce = randomUUID();
    const first = await call(verb, workflowId, nonce);
    expect(first?.result).toBe('done');
    const after = await bench.snapshot();
    expect(await call(verb, workflowId, nonce)).toEqual(first);
    expect(await bench.snapshot()).toBe(after);
  });

  test('resume, sent again after somebody has cancelled the workflow meanwhile, does not resume it again', async () => {
    await protocol.inStatus('r', 'CANCELLED');
    const nonce = randomUUID();
    const first = await call('resume', 'r', nonce);
    await bench.admin.cancel('r');
    const after = await bench.snapshot();
    expect(await call('resume', 'r', nonce)).toEqual(first);
    expect(await bench.snapshot()).toBe(after);
  });

  test('delete, sent again after the ID was taken by a new workflow, does not delete that', async () => {
    await protocol.inStatus('taken again', 'SUCCESS');
    const nonce = randomUUID();
    await call('delete', 'taken again', nonce);
    await protocol.start('taken again');
    const after = await bench.snapshot();
    expect(await call('delete', 'taken again', nonce)).toMatchObject({ result: 'done', status_after: null });
    expect(await bench.snapshot()).toBe(after);
  });

  test('a second try waits for the first one, which is still running, and finds its commit', async () => {
    await protocol.inStatus('slow', 'SUSPENDED');
    const nonce = randomUUID();
    let second: Promise<unknown> = Promise.resolve();
    await bench.driver.transaction(async (transaction) => {
      const runner = {
        query: (text: string, values = []) => transaction.query(text.replaceAll('@', `${SCHEMA}.`), values),
      };
      await call('cancel', 'slow', nonce, runner as Pick<AdminBench, 'query'>);
      second = call('cancel', 'slow', nonce);
    });
    expect(await second).toEqual({ result: 'done', status_before: 'SUSPENDED', status_after: 'CANCELLED' });
    expect((await bench.admin.audit('slow')).items).toHaveLength(1);
  });

  test('C68 the store resolves it: one act, one audit row, one fork', async () => {
    await protocol.inStatus('lossy', 'SUCCESS');
    const store = new PostgresAdminStore({ driver: losingReplies(bench.driver, 2), schema: SCHEMA });
    expect(await adminOn(store).fork('lossy', { fromStep: 2, workflowId: 'lossy fork' })).toEqual({
      workflowId: 'lossy fork',
    });
    expect((await bench.admin.audit('lossy')).items).toHaveLength(1);
    expect((await bench.admin.list({ idPrefix: 'lossy' })).items).toHaveLength(2);
    await store.close();
  });
});

describe('the audit', () => {
  test.each(Object.keys(CALLS) as Verb[])('is written in the transaction of %s, or nothing is', async (verb) => {
    await bench.query(`ALTER TABLE @admin_audit ADD CONSTRAINT no_actor CHECK (actor <> 'a') NOT VALID`);
    try {
      const workflowId = `unaudited ${verb}`;
      await protocol.inStatus(workflowId, verb === 'resume' ? 'BLOCKED' : 'PENDING');
      await bench.query(`DELETE FROM @workflow_status WHERE workflow_id = 'a fork'`);
      const before = await bench.snapshot();
      await expect(call(verb, workflowId, randomUUID())).rejects.toBeInstanceOf(DatabaseError);
      expect(await bench.snapshot()).toBe(before);
    } finally {
      await bench.query('ALTER TABLE @admin_audit DROP CONSTRAINT no_actor');
    }
  });

  test('says who, why, from what, to what and when, the newest first, page by page', async () => {
    await protocol.inStatus('audited', 'PENDING');
    await bench.admin.cancel('audited', { actor: 'anna', reason: 'twice' });
    await bench.admin.resume('audited', { actor: 'ben' });
    await bench.admin.rewind('audited', { toStep: 1 });
    const all = await bench.admin.audit('audited');
    expect(all.nextCursor).toBeNull();
    expect(all.items).toMatchObject([
      {
        verb: 'rewind',
        actor: 'unknown',
        reason: null,
        statusBefore: 'ENQUEUED',
        detail: { toStep: 1, removedSteps: 3 },
      },
      { verb: 'resume', actor: 'ben', statusBefore: 'CANCELLED', statusAfter: 'ENQUEUED', detail: null },
      { verb: 'cancel', actor: 'anna', reason: 'twice', statusBefore: 'PENDING', statusAfter: 'CANCELLED' },
    ]);
    const paged = [];
    let cursor: string | null = null;
    do {
      const page = await bench.admin.audit('audited', { limit: 1, ...(cursor !== null && { cursor }) });
      paged.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(paged).toEqual(all.items);
  });

  test('outlives the workflow, and shows who owned it before', async () => {
    await protocol.inStatus('remembered', 'PENDING');
    await bench.admin.cancel('remembered');
    expect((await bench.admin.ownership('remembered')).items).toMatchObject([
      { epoch: 1, executorId: 'exec', reason: 'started', endedHow: 'cancel' },
    ]);
    await bench.admin.delete('remembered');
    await expect(bench.admin.ownership('remembered')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    expect((await bench.admin.audit('remembered')).items.map(({ verb }) => verb)).toEqual(['delete', 'cancel']);
  });
});
