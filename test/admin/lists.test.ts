import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkflowFilter } from '../../src/admin/admin-requests.js';
import { InvalidArgumentError } from '../../src/errors/admin-errors.js';
import { encodeValue } from '../../src/values/index.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { Protocol, STATUSES } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

async function idsOf(filter: WorkflowFilter, between?: () => Promise<unknown>): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await bench.admin.list({ ...filter, ...(cursor !== null && { cursor }) });
    ids.push(...page.items.map(({ workflowId }) => workflowId));
    cursor = page.nextCursor;
    await between?.();
  } while (cursor !== null);
  return ids;
}

describe('C70 pages', () => {
  const TOTAL = 10_000;
  const DAY = '2020-01-01T00:00:00.123456Z';
  const insert = (prefix: string, count: number, at: string) =>
    bench.query(
      `WITH workflows AS (
         INSERT INTO @workflow_status (workflow_id, name, status, record_version, max_attempts, created_at, updated_at)
         SELECT $1::text || lpad(n::text, 5, '0'), 'bulk', 'ENQUEUED', 1, 1, $3::timestamptz, $3::timestamptz
           FROM generate_series(1, $2::int4) n
         RETURNING workflow_id, created_at)
       INSERT INTO @workflow_input (workflow_id, input, nonce, created_at)
       SELECT workflow_id, '[]', gen_random_uuid(), created_at FROM workflows`,
      [prefix, count, at],
    );
  const all = Array.from({ length: TOTAL }, (_, index) => `page ${String(index + 1).padStart(5, '0')}`);
  beforeAll(() => insert('page ', TOTAL, DAY));

  test('hold 10,000 rows of one time stamp once each, while rows are added', async () => {
    let added = 0;
    const add = () => insert(`page x${String(added++)} `, 1, '2020-01-01T00:00:00.123457Z');
    const filter = { idPrefix: 'page ', name: 'bulk', limit: 999 };
    expect(await idsOf({ ...filter, order: 'newest-first' }, add)).toEqual([...all].reverse());
    await bench.query(`DELETE FROM @workflow_status WHERE workflow_id LIKE 'page x%'`);
    // In this order what is added comes at the end.
    const ascending = await idsOf({ ...filter, order: 'oldest-first' }, add);
    expect(ascending.slice(0, TOTAL)).toEqual(all);
    expect(new Set(ascending).size).toBe(ascending.length);
    await bench.query(`DELETE FROM @workflow_status WHERE workflow_id LIKE 'page x%'`);
  });

  test('tell time stamps apart that differ by a microsecond', async () => {
    for (const micros of ['1', '2', '3']) await insert(`micro ${micros}`, 2, `2021-01-01T00:00:00.00000${micros}Z`);
    const ids = ['micro 100001', 'micro 100002', 'micro 200001', 'micro 200002', 'micro 300001', 'micro 300002'];
    expect(await idsOf({ idPrefix: 'micro ', limit: 1, order: 'oldest-first' })).toEqual(ids);
    expect(await idsOf({ idPrefix: 'micro ', limit: 1 })).toEqual([...ids].reverse());
  });

  test('end exactly at the last row', async () => {
    const page = await bench.admin.list({ idPrefix: 'page ', limit: 1_000 });
    expect(page.nextCursor).not.toBeNull();
    expect((await bench.admin.list({ idPrefix: 'micro ', limit: 6 })).nextCursor).toBeNull();
  });

  test('refuse cursors that the list did not return', async () => {
    const { nextCursor } = await bench.admin.list({ idPrefix: 'page ', limit: 1 });
    const other = Buffer.from(JSON.stringify(['workflows-newest', '12', 'a\0'])).toString('base64url');
    const large = Buffer.from(JSON.stringify(['workflows-newest', '9'.repeat(30), 'a'])).toString('base64url');
    const typed = Buffer.from(JSON.stringify(['workflows-newest', 12, 'a'])).toString('base64url');
    for (const cursor of ['', 'x', '{}', 'bnVsbA', other, large, typed, 'A'.repeat(4_096), 'A'.repeat(10_000)]) {
      await expect(bench.admin.list({ cursor })).rejects.toBeInstanceOf(InvalidArgumentError);
    }
    await expect(bench.admin.list({ cursor: nextCursor ?? '', order: 'oldest-first' })).rejects.toBeInstanceOf(
      InvalidArgumentError,
    );
  });
});

describe('filters', () => {
  test('C70 an ID prefix is literal: % and _ are no wildcards', async () => {
    for (const workflowId of ['lit%a', 'lit%b', 'litxa', 'lit_a', 'lit\\a', 'lité', 'LIT%a'])
      await protocol.start(workflowId);
    expect((await idsOf({ idPrefix: 'lit%' })).sort()).toEqual(['lit%a', 'lit%b']);
    expect(await idsOf({ idPrefix: 'lit_' })).toEqual(['lit_a']);
    expect(await idsOf({ idPrefix: 'lit\\' })).toEqual(['lit\\a']);
    expect(await idsOf({ idPrefix: 'lité' })).toEqual(['lité']);
    expect(await idsOf({ idPrefix: '%' })).toEqual([]);
    expect(await idsOf({ idPrefix: "'; DROP TABLE workflow_status; --" })).toEqual([]);
  });

  test('have to fit all together', async () => {
    for (const status of STATUSES) await protocol.inStatus(`f ${status}`, status);
    const parent = await protocol.start('f parent');
    await protocol.child(parent, { childId: 'f child', seq: 0 });
    const sorted = async (filter: WorkflowFilter) => (await idsOf({ idPrefix: 'f ', ...filter })).sort();
    expect(await sorted({ status: 'BLOCKED' })).toEqual(['f BLOCKED']);
    expect(await sorted({ status: ['SUCCESS', 'ERROR'] })).toEqual(['f ERROR', 'f SUCCESS']);
    expect(await sorted({ name: 'child' })).toEqual(['f child']);
    expect(await sorted({ parentId: 'f parent' })).toEqual(['f child']);
    expect(await sorted({ attention: true })).toEqual(['f BLOCKED', 'f DEAD_LETTER']);
    expect(await sorted({ attention: true, status: 'BLOCKED' })).toEqual(['f BLOCKED']);
    expect(await sorted({ attention: false })).toHaveLength(9);
    expect(await sorted({ executorId: 'exec' })).toHaveLength(11);
    expect(await sorted({ executorId: 'nobody' })).toEqual([]);
    expect(await sorted({ appVersion: 'v1', name: ['work', 'child'] })).toHaveLength(11);
    expect(await sorted({ appVersion: '' })).toEqual([]);
    const { createdAt } = await bench.admin.get('f parent');
    expect(await sorted({ createdFrom: new Date(createdAt.getTime() + 1) })).not.toContain('f parent');
    expect(await sorted({ createdFrom: createdAt })).toContain('f parent');
    expect(await sorted({ createdBefore: createdAt })).not.toContain('f parent');
    expect(await sorted({ createdFrom: new Date('9999-12-31T00:00:00Z') })).toEqual([]);
  });
});

describe('payloads', () => {
  test('come only when asked for', async () => {
    const owned = await protocol.start('paid');
    await protocol.checkpoint(owned, 0, { output: { a: 1n } });
    await protocol.complete(owned);
    expect(await bench.admin.get('paid')).not.toHaveProperty('input');
    expect((await bench.admin.list({ idPrefix: 'paid' })).items[0]).not.toHaveProperty('output');
    expect((await bench.admin.steps('paid')).items[0]).not.toHaveProperty('output');
    expect(await bench.admin.get('paid', { payload: true })).toMatchObject({
      input: { readable: true, value: ['paid'] },
      output: { readable: true, value: 'done' },
    });
    expect((await bench.admin.steps('paid', { payload: true })).items[0]?.output).toEqual({
      readable: true,
      value: { a: 1n },
    });
  });

  test('C53 one that cannot be read is shown as it is stored, and its neighbours are read', async () => {
    await protocol.start('torn 1');
    await protocol.start('torn 2');
    await bench.query(`UPDATE @workflow_input SET input = '{torn' WHERE workflow_id = 'torn 1'`);
    const { items } = await bench.admin.list({ idPrefix: 'torn ', payload: true, order: 'oldest-first' });
    expect(items.map(({ input }) => input)).toMatchObject([
      { readable: false, text: '{torn', error: { code: 'VALUE_UNREADABLE' } },
      { readable: true, value: ['torn 2'] },
    ]);
  });

  test('of more than 32 MiB end the page early, and nothing is left out', async () => {
    const owned = await protocol.start('large');
    const output = 'x'.repeat(12 * 2 ** 20);
    for (const seq of [0, 1, 2, 3, 4]) await protocol.checkpoint(owned, seq, { output });
    const sizes = [];
    let cursor: string | null = null;
    do {
      const page = await bench.admin.steps('large', { payload: true, ...(cursor !== null && { cursor }) });
      sizes.push(page.items.length);
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(sizes).toEqual([2, 2, 1]);
    expect((await bench.admin.steps('large')).items).toHaveLength(5);
  });

  test('the errors of earlier attempts are read one by one', async () => {
    const owned = await protocol.start('tried');
    await protocol.checkpoint(owned, 0);
    const stored = `[${encodeValue('first')},${encodeValue(new Date(0))}]`;
    await bench.query(`UPDATE @step_result SET attempt_errors = $1::text WHERE workflow_id = 'tried'`, [stored]);
    expect((await bench.admin.steps('tried', { payload: true })).items[0]?.attemptErrors).toEqual([
      { readable: true, value: 'first' },
      { readable: true, value: new Date(0) },
    ]);
  });
});

test('an unknown workflow is not found, whatever is asked of it', async () => {
  for (const ask of ['get', 'steps', 'ownership'] as const) {
    await expect(bench.admin[ask]('nowhere')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  }
  expect(await bench.admin.audit('nowhere')).toEqual({ items: [], nextCursor: null });
  await protocol.start('fresh');
  expect(await bench.admin.steps('fresh')).toEqual({ items: [], nextCursor: null });
});
