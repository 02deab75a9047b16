import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BulkResult } from '../../src/admin/admin-answers.js';
import { InvalidArgumentError } from '../../src/errors/admin-errors.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { Protocol } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

const summary = (result: BulkResult): string =>
  result.ok ? result.result : ((result.error as { code?: string }).code ?? result.error.name);

describe('a list of IDs', () => {
  test('has one result each, in its order, whatever becomes of the neighbours', async () => {
    await protocol.inStatus('z live', 'PENDING');
    await protocol.inStatus('a live', 'SUSPENDED');
    await protocol.inStatus('ended', 'SUCCESS');
    const ids = ['z live', 'nowhere', 'ended', 'a live', '', 'x'.repeat(513), 'a\0b', '\ud800', 7 as never, 'z live'];
    const results = await bench.admin.cancel(ids, { reason: 'all' });
    expect(results.map(summary)).toEqual([
      'done',
      'WORKFLOW_NOT_FOUND',
      'unchanged',
      'done',
      ...Array.from({ length: 5 }, () => 'INVALID_ARGUMENT'),
      'done',
    ]);
    expect(results.map(({ workflowId }) => workflowId).slice(0, 4)).toEqual(ids.slice(0, 4));
    expect((await bench.admin.audit('z live')).items).toHaveLength(1);

    expect((await bench.admin.resume(['ended', 'a live', 'nowhere'])).map(summary)).toEqual([
      'WORKFLOW_STATE',
      'done',
      'WORKFLOW_NOT_FOUND',
    ]);
    expect((await bench.admin.delete(['ended', 'a live', 'z live'])).map(summary)).toEqual([
      'done',
      'WORKFLOW_STATE',
      'done',
    ]);
    expect(await bench.admin.cancel([])).toEqual([]);
  });

  test('may be long: 1,203 at once', async () => {
    await bench.query(
      `INSERT INTO @workflow_status (workflow_id, name, status, record_version, max_attempts, created_at, updated_at)
       SELECT 'many ' || n, 'work', 'ENQUEUED', 1, 1, now(), now() FROM generate_series(1, 1203) n`,
    );
    const ids = Array.from({ length: 1_203 }, (_, index) => `many ${String(index + 1)}`);
    const results = await bench.admin.cancel(ids);
    expect(results.map(({ workflowId }) => workflowId)).toEqual(ids);
    expect(results.every((result) => result.ok && result.statusAfter === 'CANCELLED')).toBe(true);
    const [row] = await bench.query<{ count: number }>(
      `SELECT count(DISTINCT audit_id)::int4 AS count FROM @admin_audit WHERE workflow_id LIKE 'many %'`,
    );
    expect(row?.count).toBe(1_203);
  });

  test('of more than 10,000 is refused before anything is written', async () => {
    const before = await bench.snapshot();
    await expect(bench.admin.cancel(Array.from({ length: 10_001 }, () => 'nowhere'))).rejects.toBeInstanceOf(
      InvalidArgumentError,
    );
    expect(await bench.snapshot()).toBe(before);
  });

  test('one that the database refuses fails alone', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `n ${String(index)}`);
    for (const workflowId of [...ids, 'poison']) await protocol.start(workflowId);
    await bench.query(`ALTER TABLE @admin_audit ADD CONSTRAINT no_poison CHECK (workflow_id <> 'poison')`);
    const results = await bench.admin.cancel([...ids, 'poison']);
    expect(results.map(summary)).toEqual([...ids.map(() => 'done'), 'DATABASE_ERROR']);
    expect((await bench.admin.get('poison')).status).toBe('PENDING');
  });

  test('one whose row somebody holds locked waits alone, until it is free', async () => {
    for (const workflowId of ['l 0', 'l 1', 'l 2']) await protocol.start(workflowId);
    let cancelled: Promise<readonly BulkResult[]> = Promise.resolve([]);
    await bench.driver.transaction(async (transaction) => {
      await transaction.query(`SELECT FROM holdfast.workflow_status WHERE workflow_id = 'l 1' FOR UPDATE`);
      cancelled = bench.admin.cancel(['l 0', 'l 1', 'l 2']);
      await expect
        .poll(async () => (await bench.admin.get('l 0')).status + (await bench.admin.get('l 2')).status, {
          timeout: 40_000,
        })
        .toBe('CANCELLEDCANCELLED');
    });
    expect((await cancelled).map(summary)).toEqual(['done', 'done', 'done']);
  });
});

describe('hostile arguments are refused before anything is written', () => {
  const refused: Readonly<Record<string, () => Promise<unknown>>> = {
    'an empty ID': () => bench.admin.cancel(''),
    'an ID of 513 bytes': () => bench.admin.cancel('é'.repeat(257)),
    'an ID with NUL': () => bench.admin.resume('a\0'),
    'an ID with a lone surrogate': () => bench.admin.delete('a\udfff'),
    'an ID that is no text': () => bench.admin.get(12 as never),
    'no ID at all': () => bench.admin.rewind(undefined as never, { toStep: 0 }),
    'an unknown option': () => bench.admin.cancel('victim', { childern: 'keep' } as never),
    'options that are no object': () => bench.admin.cancel('victim', 'keep' as never),
    'an unknown value': () => bench.admin.cancel('victim', { children: 'drop' as never }),
    'a reason with NUL': () => bench.admin.cancel('victim', { reason: 'a\0' }),
    'a reason of 4,097 bytes': () => bench.admin.cancel('victim', { reason: 'x'.repeat(4_097) }),
    'an empty actor': () => bench.admin.cancel('victim', { actor: '' }),
    'half a step': () => bench.admin.rewind('victim', { toStep: 0.5 }),
    'no number': () => bench.admin.rewind('victim', { toStep: NaN }),
    'a step as text': () => bench.admin.fork('victim', { fromStep: '1' as never }),
    'no step': () => bench.admin.fork('victim', {} as never),
    'a new ID that is too long': () => bench.admin.fork('victim', { fromStep: 0, workflowId: 'x'.repeat(513) }),
    'a force that is no boolean': () => bench.admin.delete('victim', { force: 'yes' as never }),
    'a page of none': () => bench.admin.list({ limit: 0 }),
    'a page of 1,001': () => bench.admin.list({ limit: 1_001 }),
    'a page of one and a half': () => bench.admin.audit('victim', { limit: 1.5 }),
    'a status that there is not': () => bench.admin.list({ status: 'RUNNING' as never }),
    'a filter of 101 names': () => bench.admin.list({ name: Array.from({ length: 101 }, () => 'a') }),
    'an empty filter': () => bench.admin.list({ status: [] }),
    'an invalid date': () => bench.admin.list({ createdFrom: new Date(NaN) }),
    'a date far off': () => bench.admin.list({ createdBefore: new Date(8.64e15) }),
    'a prefix with a lone surrogate': () => bench.admin.list({ idPrefix: '\ud800' }),
  };
  test.each(Object.keys(refused))('%s', async (what) => {
    const before = await bench.snapshot();
    await expect(refused[what]?.()).rejects.toBeInstanceOf(InvalidArgumentError);
    expect(await bench.snapshot()).toBe(before);
  });

  test('an ID that is odd but legal is an ID like others', async () => {
    for (const workflowId of ["'; DELETE FROM x; --", '{"a",NULL}', 'NULL', '🦀'.repeat(128), '\\', ' ', '%', '"']) {
      await protocol.start(workflowId);
      expect((await bench.admin.cancel([workflowId])).map(summary)).toEqual(['done']);
      expect(await bench.admin.get(workflowId)).toMatchObject({ workflowId, status: 'CANCELLED' });
      await bench.admin.delete(workflowId);
    }
  });
});
