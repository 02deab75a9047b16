import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkflowStatus } from '../../src/api/workflow-handle.js';
import { WorkflowStateError } from '../../src/errors/admin-errors.js';
import { ROOT, tableRows } from '../docs/markdown.js';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { Protocol, STATUSES } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;

beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

type Effect = 'ENQUEUED' | 'CANCELLED' | 'unchanged' | 'refused' | 'gone' | 'new one';

/** With the heads of their columns. */
const COLUMNS = {
  cancel: '`cancel`',
  resume: '`resume`',
  rewind: '`rewind`',
  fork: '`fork`',
  delete: '`delete`',
  'delete by force': '`delete`, `force: true`',
} as const;
type Verb = keyof typeof COLUMNS;
const VERBS = Object.keys(COLUMNS) as readonly Verb[];

/** The documentation's table is the specification. */
const ROWS = tableRows('docs/admin.md', '## Every operation in every status');

function effectOf(verb: Verb, status: WorkflowStatus): Effect {
  const column = ROWS[0]?.indexOf(COLUMNS[verb]) ?? -1;
  const cell = ROWS.find(([first]) => first === `\`${status}\``)?.[column] ?? '';
  const stated = /^`?(ENQUEUED|CANCELLED|unchanged|refused|deleted|new one)\b/.exec(cell)?.[1];
  if (stated === undefined) throw new Error(`The table has no effect of ${verb} on ${status}.`);
  return stated === 'deleted' ? 'gone' : (stated as Effect);
}

test('the documentation has every status, and the comment in the SQL has the same table', async () => {
  expect(ROWS.slice(1).map(([status]) => status)).toEqual(STATUSES.map((status) => `\`${status}\``));
  const comment = await readFile(join(ROOT, 'sql', 'functions', 'begin_control.sql'), 'utf8');
  for (const status of STATUSES) {
    const row = new RegExp(`^--   ${status} +(.*)$`, 'm').exec(comment)?.[1]?.split(/ {2,}/);
    expect(row, status).toEqual(VERBS.map((verb) => effectOf(verb, status)));
  }
});

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

describe.each(VERBS.filter((verb) => verb !== 'fork'))('%s', (verb) => {
  test.each(STATUSES)('does to a workflow that is %s what the table says', async (status) => {
    const workflowId = `${verb} ${status}`;
    const owned = await protocol.inStatus(workflowId, status);
    const effect = effectOf(verb, status);
    const before = await bench.snapshot();
    const { recordVersion } = await bench.admin.get(workflowId);

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
    await expectWhole(workflowId, effect);

    if (effect !== 'gone') {
      const found = await bench.admin.get(workflowId, { payload: true });
      expect(found).toMatchObject({ status: effect, recordVersion: recordVersion + 1, attention: null, wakeAt: null });
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
