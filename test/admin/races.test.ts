import { afterAll, beforeAll, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors/holdfast-error.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { type Owned, Protocol } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

const ROUNDS = 60;

/** What is true of every workflow at every moment. */
async function expectSound(): Promise<void> {
  const broken = await bench.query(
    `SELECT s.workflow_id, s.status,
            (SELECT count(*)::int4 FROM @workflow_outcome o WHERE o.workflow_id = s.workflow_id) AS outcomes,
            (SELECT count(*)::int4 FROM @workflow_ownership o
              WHERE o.workflow_id = s.workflow_id AND o.ended_at IS NULL) AS open
       FROM @workflow_status s
      WHERE (s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'))
              <> EXISTS (SELECT FROM @workflow_outcome o WHERE o.workflow_id = s.workflow_id)
         OR (s.status = 'PENDING') <> EXISTS (SELECT FROM @workflow_ownership o
              WHERE o.workflow_id = s.workflow_id AND o.ended_at IS NULL)
         OR EXISTS (SELECT FROM @workflow_ownership o
              WHERE o.workflow_id = s.workflow_id AND o.ended_at IS NULL AND o.epoch <> s.epoch)
         OR NOT EXISTS (SELECT FROM @workflow_input i WHERE i.workflow_id = s.workflow_id)`,
  );
  expect(broken).toEqual([]);
  for (const table of ['workflow_input', 'workflow_outcome', 'step_result', 'step_intent', 'workflow_ownership']) {
    const orphans = await bench.query(
      `SELECT t.workflow_id FROM @${table} t
        WHERE NOT EXISTS (SELECT FROM @workflow_status s WHERE s.workflow_id = t.workflow_id)`,
    );
    expect(orphans, table).toEqual([]);
  }
}

/** Claims, checkpoints and completes for as long as it is let; returns how many of its writes were accepted. */
async function execute(workflowId: string, first: Owned, until: { over: boolean }): Promise<number> {
  let accepted = 0;
  let owned: Owned | null = first;
  while (!until.over) {
    if (owned === null) {
      owned = await protocol.claim(workflowId);
      if (owned !== null) accepted += 1;
      continue;
    }
    const steps: number = (await bench.admin.steps(workflowId, { limit: 1_000 })).items.length;
    const answer: string | null = steps < 6 ? await protocol.checkpoint(owned, steps) : await protocol.complete(owned);
    if (answer === null) accepted += 1;
    else if (answer !== 'locked' && answer !== 'conflict') owned = null;
  }
  return accepted;
}

test('verbs racing an execution: every accepted write is one version, and nothing else moves it', async () => {
  const verbs = [
    (id: string) => bench.admin.cancel(id),
    (id: string) => bench.admin.resume(id),
    (id: string) => bench.admin.rewind(id, { toStep: 0 }),
    (id: string) => bench.admin.resume(id),
    (id: string) => bench.admin.rewind(id, { toStep: 1 }),
  ];
  await Promise.all(
    Array.from({ length: 4 }, async (_, lane) => {
      const workflowId = `race ${String(lane)}`;
      const until = { over: false };
      const execution = execute(workflowId, await protocol.start(workflowId), until);
      let done = 0;
      const act = async (offset: number): Promise<void> => {
        for (let round = 0; round < ROUNDS; round++) {
          const verb = verbs[(round * 7 + offset + lane) % verbs.length];
          try {
            if ((await verb?.(workflowId))?.result === 'done') done += 1;
          } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            expect(['WORKFLOW_STATE', 'STEP_NOT_FOUND']).toContain(error.code);
          }
        }
      };
      await Promise.all([act(0), act(1), act(3)]);
      until.over = true;
      const accepted = await execution;
      const audits = [];
      let cursor: string | null = null;
      do {
        const page = await bench.admin.audit(workflowId, { ...(cursor !== null && { cursor }) });
        audits.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(audits).toHaveLength(done);
      expect(done).toBeGreaterThan(10);
      const { recordVersion } = await bench.admin.get(workflowId);
      expect(recordVersion).toBe(1 + done + accepted);
    }),
  );
  await expectSound();
});

test('the same verb from twenty connections takes effect once', async () => {
  for (const [status, verb, act] of [
    ['PENDING', 'cancel', (id: string) => bench.admin.cancel(id)],
    ['CANCELLED', 'resume', (id: string) => bench.admin.resume(id)],
    ['SUCCESS', 'delete', (id: string) => bench.admin.delete(id)],
  ] as const) {
    const workflowId = `twenty ${verb}`;
    await protocol.inStatus(workflowId, status);
    const audits = (await bench.admin.audit(workflowId)).items.length;
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => act(workflowId)));
    const done = results.filter((result) => result.status === 'fulfilled' && result.value.result === 'done');
    expect(done).toHaveLength(1);
    expect((await bench.admin.audit(workflowId)).items).toHaveLength(audits + 1);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    }
  }
  await expectSound();
});

test('C68 forks to one ID from twenty connections make one workflow', async () => {
  await protocol.inStatus('forked', 'PENDING');
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, () => bench.admin.fork('forked', { fromStep: 2, workflowId: 'one fork' })),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect((await bench.admin.audit('forked')).items).toHaveLength(1);
  await expectSound();
});

test('a fork of a workflow that is writing has a whole record', async () => {
  const until = { over: false };
  const execution = execute('writing', await protocol.start('writing'), until);
  for (let round = 0; round < 20; round++) {
    const { workflowId } = await bench.admin.fork('writing', { fromStep: 0 });
    await bench.admin.rewind('writing', { toStep: 0 });
    await expect.poll(async () => (await bench.admin.steps('writing')).items.length).toBeGreaterThan(2);
    const { workflowId: second } = await bench.admin.fork('writing', { fromStep: 3 });
    const { items } = await bench.admin.steps(second);
    expect(items.map(({ seq, recordVersion }) => [seq, recordVersion])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
    await bench.admin.delete([workflowId, second], { force: true });
  }
  until.over = true;
  await execution;
  await expectSound();
});

test('cancels and resumes of entangled families, in opposite orders, all get through', async () => {
  const parents = [];
  for (let index = 0; index < 12; index++) {
    const parent = await protocol.start(`tangle ${String(index).padStart(2, '0')}`);
    parents.push(parent);
    // The children's IDs sort the other way round, so that cascades lock against the order of the lists.
    await protocol.child(parent, { childId: `tangle ${String(50 - index)}`, seq: 0 });
  }
  const ids = parents.map(({ workflowId }) => workflowId);
  const children = ids.map((_, index) => `tangle ${String(50 - index)}`);
  const lists = [ids, [...children, ...ids], children, [...ids].reverse(), [...ids, ...children]];
  for (let round = 0; round < 6; round++) {
    const results = await Promise.all(
      lists.map((list, index) => (index % 2 === round % 2 ? bench.admin.cancel(list) : bench.admin.resume(list))),
    );
    for (const result of results.flat()) expect(result).toMatchObject({ ok: true });
  }
  await expectSound();
});

test('C71 deletes cut off at any moment leave whole workflows or none', async () => {
  for (let index = 0; index < 12; index++) {
    const workflowId = `cut ${String(index)}`;
    const owned = await protocol.start(workflowId);
    for (let seq = 0; seq < 20; seq++) await protocol.checkpoint(owned, seq, { output: 'x'.repeat(10_000) });
    await protocol.complete(owned);
  }
  const ids = Array.from({ length: 12 }, (_, index) => `cut ${String(index)}`);
  const deleting = Promise.all(ids.map((workflowId) => bench.admin.delete([workflowId])));
  for (let kill = 0; kill < 5; kill++) {
    await bench
      .query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%delete_workflow%'`,
      )
      .catch(() => undefined);
  }
  expect((await deleting).flat()).toMatchObject(ids.map((workflowId) => ({ ok: true, workflowId })));
  await expectSound();
});
