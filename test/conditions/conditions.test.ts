import { readFile } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { defineWorkflow, runStep } from '../../src/index.js';
import { currentCondition, inSchema } from '../support/conditions.js';
import { createBed, type Bed } from '../support/launch.js';
import { LEFT_OUT, type LeftOut, leftOutReason, NOTHING_LAUNCHED } from '../support/left-out.js';

let bed: Bed;
let runs = 0;
const bodies: string[] = [];

const step = (name: string): Promise<string> =>
  runStep(name, () => {
    bodies.push(name);
    return Promise.resolve(name);
  });
const flow = defineWorkflow('flow', async () => {
  runs += 1;
  return [...(await Promise.all([step('a'), step('b')])), await step('c'), await step('d')];
});

beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

async function one<Row>(text: string): Promise<Row | undefined> {
  return (await bed.sql.query<Row & object>(text)).rows[0];
}

test('the condition that this run is under is in effect, and the record is the same as without', async () => {
  const condition = currentCondition()?.name;
  const holdfast = await bed.launch({ workflows: [flow] });
  const handles = await Promise.all(
    ['w', ...Array.from({ length: 20 }, () => undefined)].map((workflowId) =>
      holdfast.start(flow, workflowId === undefined ? {} : { workflowId }),
    ),
  );
  for (const handle of handles) expect(await handle.result()).toEqual(['a', 'b', 'c', 'd']);
  expect(bodies).toHaveLength(4 * handles.length);
  const record = `SELECT epoch::int4, record_version::int4, attempts FROM holdfast.workflow_status WHERE workflow_id = 'w'`;
  expect(await one(record)).toEqual({ epoch: 1, record_version: 6, attempts: 1 });

  const lease = `SELECT (extract(epoch FROM lease_until - heartbeat_at) * 1000)::int4 AS ms FROM holdfast.executor`;
  expect(await one(lease)).toEqual({ ms: condition === 'short-lease' ? 200 : 15_000 });
  const schema = await one<{ name: string }>(
    `SELECT schemaname AS name FROM pg_tables WHERE tablename = 'workflow_status'`,
  );
  expect(schema?.name).toBe(condition === 'other-schema' ? 'select' : 'holdfast');
  const sessions = await one<{ listening: number; others: number }>(
    `SELECT count(*) FILTER (WHERE query LIKE 'LISTEN%')::int4 AS listening, count(*) FILTER (WHERE query NOT LIKE 'LISTEN%')::int4 AS others
       FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast'`,
  );
  expect(sessions?.listening).toBe(condition === 'no-notifications' ? 0 : 1);
  if (condition === 'small-pool') expect(sessions?.others).toBeLessThanOrEqual(2);
  expect('__proto__' in {}).toBe(condition !== 'no-proto');
  // Two steps at once are one await.
  expect(runs).toBe((condition === 'replay-always' ? 4 : 1) * handles.length);
});

describe('SQL of tests, for another schema', () => {
  test.each([
    ['SELECT * FROM holdfast.workflow_status', 'SELECT * FROM "other".workflow_status'],
    ['SELECT holdfast.clock()', 'SELECT "other".clock()'],
    ['LISTEN "holdfast.work"', 'LISTEN "other.work"'],
    [`SELECT pg_notify('holdfast.work', '')`, `SELECT pg_notify('other.work', '')`],
    [`SET holdfast.clock_offset = '1 h'`, `SET holdfast.clock_offset = '1 h'`],
    [`WHERE schemaname = 'holdfast'`, `WHERE schemaname = 'other'`],
  ])('%s', (text, expected) => {
    expect(inSchema(text, 'other')).toBe(expected);
    expect(inSchema(text, 'holdfast')).toBe(text);
  });
});

describe('what is left out', () => {
  const list: readonly LeftOut[] = [
    { under: 'no-proto', file: 'test/a.test.ts', title: 'second', reason: 'one' },
    { under: ['no-proto', 'short-lease'], file: 'test/b.test.ts', reason: 'two' },
  ];

  test('is a test of a file, or all of it, under what is named', () => {
    expect(leftOutReason(list, 'no-proto', 'test/a.test.ts', 'the second')).toBe('one');
    expect(leftOutReason(list, 'no-proto', 'test/a.test.ts', 'the first')).toBeUndefined();
    expect(leftOutReason(list, 'short-lease', 'test/a.test.ts', 'the second')).toBeUndefined();
    expect(leftOutReason(list, 'short-lease', 'test/b.test.ts', 'any')).toBe('two');
  });

  test('says why', () => {
    for (const { reason } of LEFT_OUT) expect(reason.length).toBeGreaterThan(10);
  });

  test('is not a file that launches something, where the reason is that nothing is launched', async () => {
    for (const { file, reason } of LEFT_OUT)
      if (reason.startsWith(NOTHING_LAUNCHED))
        expect(await readFile(file, 'utf8'), file).not.toMatch(
          /createBed|launchParts|Workers|HoldfastClient|\blaunch\(/,
        );
  });
});
