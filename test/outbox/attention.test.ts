import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ATTENTION_GUIDES } from '../../src/admin/attention-guide.js';
import { defineWorkflow, NonRetryableError, receive, type AttentionEntry, type Holdfast } from '../../src/index.js';
import { ROOT, tableRows } from '../docs/markdown.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
const waits = defineWorkflow('waits', () => receive('never'));
beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [waits],
    outbox: { handlers: { refused: () => Promise.reject(new NonRetryableError('no')) } },
  });
});
afterAll(() => bed.close());

async function block(workflowId: string, code: string, createdAt = 'clock_timestamp()'): Promise<void> {
  await holdfast.start(waits, { workflowId });
  await bed.sql.query(
    `UPDATE holdfast.workflow_status
        SET status = 'BLOCKED', owner_token = NULL, record_version = record_version + 1, attention = $2,
            attention_detail = 'found by ' || workflow_id, updated_at = clock_timestamp(), created_at = ${createdAt}
      WHERE workflow_id = $1`,
    [workflowId, code],
  );
}

async function all(limit: number, code?: string | readonly string[]): Promise<AttentionEntry[]> {
  const entries: AttentionEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await holdfast.admin.attention({ limit, ...(cursor && { cursor }), ...(code && { code }) });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    entries.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return entries;
}

const nameOf = (entry: AttentionEntry): string => (entry.kind === 'event' ? entry.topic : entry.workflowId);

test('nothing waits for a person: the list is empty', async () => {
  expect(await holdfast.admin.attention()).toEqual({ items: [], nextCursor: null });
});

test('workflows and events are one list, the oldest first, each with its reason, since when, and what to do', async () => {
  await block('nondeterministic', 'NONDETERMINISM');
  await holdfast.outbox.add('refused', 1, { key: 'k' });
  await waitUntil(async () => (await all(10)).length === 2, 'both are listed');
  await block('unknown', 'OUTCOME_UNKNOWN');
  await block('other', 'OF_ANOTHER_RELEASE');
  const entries = await all(10);
  expect(entries).toMatchObject([
    {
      kind: 'workflow',
      code: 'NONDETERMINISM',
      detail: 'found by nondeterministic',
      workflowId: 'nondeterministic',
      name: 'waits',
      status: 'BLOCKED',
      whatToDo: expect.stringContaining('admin.resume') as string,
    },
    {
      kind: 'event',
      code: 'UNDELIVERABLE',
      detail: 'REFUSED',
      topic: 'refused',
      key: 'k',
      workflowId: null,
      attempts: 1,
      whatToDo: expect.stringContaining('admin.outbox.redeliver') as string,
    },
    { code: 'OUTCOME_UNKNOWN', whatToDo: expect.stringContaining('idempotency key') as string },
    { code: 'OF_ANOTHER_RELEASE', whatToDo: expect.stringContaining('admin.resume') as string },
  ]);
  for (const { since } of entries) expect(Date.now() - since.getTime()).toBeLessThan(60_000);
  expect((await all(10, 'UNDELIVERABLE')).map(nameOf)).toEqual(['refused']);
  expect((await all(10, ['OUTCOME_UNKNOWN', 'NONDETERMINISM'])).map(nameOf)).toEqual(['nondeterministic', 'unknown']);
});

test('C70 pages neither repeat nor skip an entry, however many are of one moment, while others come and go', async () => {
  const [first] = await all(1_000);
  const moment = `'2020-01-01T00:00:00.123456Z'`;
  for (let n = 0; n < 7; n++) await block(`same ${String(n)}`, 'STUCK', moment);
  await bed.sql.query(
    `INSERT INTO holdfast.outbox_event (event_id, topic, payload, state, due_at, reason, added_at, died_at)
     SELECT gen_random_uuid(), 'same', '1', 'dead', clock_timestamp(), 'REFUSED', ${moment}, clock_timestamp()
       FROM generate_series(1, 7)`,
  );
  for (const limit of [1, 2, 3, 13, 14, 15]) {
    const entries = await all(limit);
    expect(entries).toHaveLength(18);
    expect(new Set(entries.map((entry) => (entry.kind === 'event' ? entry.eventId : entry.workflowId))).size).toBe(18);
    expect(nameOf(entries[14] as AttentionEntry)).toBe(nameOf(first as AttentionEntry));
  }
  const page = await holdfast.admin.attention({ limit: 5 });
  await block('older', 'STUCK', `'2019-01-01'`);
  const next = await holdfast.admin.attention({ limit: 100, cursor: page.nextCursor ?? '' });
  expect(next.items).toHaveLength(13);
});

test('bad arguments are typed errors', async () => {
  for (const filter of [{ limit: 0 }, { code: '' }, { cursor: 'nonsense' }, { codes: [] }, { code: [] }, null]) {
    await expect(holdfast.admin.attention(filter as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  }
});

test('the documentation has every code with its meaning and what to do, word for word', () => {
  const documented = tableRows('docs/attention.md')
    .filter(([code]) => code?.startsWith('`') === true)
    .map(([code, meaning, whatToDo]) => [code?.replaceAll('`', ''), meaning, whatToDo?.replaceAll('`', '')]);
  expect(documented).toEqual(
    Object.entries(ATTENTION_GUIDES).map(([code, { meaning, whatToDo }]) => [code, meaning, whatToDo]),
  );
});

test('every code that the SQL gives a workflow has its words', () => {
  const folder = join(ROOT, 'sql/functions');
  const codes = readdirSync(folder).flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/\battention\b[^;\n]*?'([A-Z_]{4,})'/g)].map(
      ([, code]) => code,
    ),
  );
  expect(codes).toContain('DEAD_LETTER');
  expect([...new Set(codes)].filter((code) => !Object.hasOwn(ATTENTION_GUIDES, code ?? ''))).toEqual([]);
});
