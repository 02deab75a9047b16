import type { Client } from 'pg';
import { expect } from 'vitest';
import type { PgProxy, ArmedFault, ProxyFault } from '../../support/pg-proxy.js';
import { snapshot } from './record.js';
import type { Workers } from './worker.js';

// Workflow `order` of the worker makes every kind of write that there is, one after the other.

/** The writes of `order` and its child in their order; and a statement that shows the record to be there. */
export const POINTS = [
  ['the start', 'SELECT FROM holdfast.workflow_status WHERE workflow_id = $1'],
  ['the checkpoint of the first step', recorded('first')],
  ['the start of the child', 'SELECT FROM holdfast.workflow_status WHERE parent_id = $1'],
  ["the checkpoint of the child's step", recorded('child step')],
  ["the child's completion", outcomeOf(`(SELECT workflow_id FROM holdfast.workflow_status WHERE parent_id = $1)`)],
  ["the checkpoint of the child's outcome", recorded('child')],
  ['the intent to sleep', `SELECT FROM holdfast.step_intent WHERE workflow_id = $1 AND kind = 'sleep'`],
  ['the end of the sleep', recorded('sleep')],
  ['the checkpoint of the second step', recorded('second')],
  ['the completion', outcomeOf('($1)')],
] as const;

export const BODIES = ['first', 'child step', 'second'];

export const WRITE = /start_batch|checkpoint_one|checkpoint_batch|complete_batch|record_intent/;

function recorded(name: string): string {
  return `SELECT FROM holdfast.step_result WHERE starts_with(workflow_id, $1) AND name = '${name}'`;
}

function outcomeOf(workflowIds: string): string {
  return `SELECT FROM holdfast.workflow_outcome WHERE workflow_id IN ${workflowIds}`;
}

/** Arms a fault for one write out of the row; it counts from now on. */
export function armAt(proxy: PgProxy, index: number, fault: ProxyFault): ArmedFault {
  let seen = 0;
  return proxy.arm(fault, ({ sql }) => WRITE.test(sql) && seen++ === index);
}

export async function isThere(sql: Client, statement: string, workflowId: string): Promise<boolean> {
  return (await sql.query(statement, [workflowId])).rowCount !== 0;
}

/** Everything that an `order` has to have come to, by the record and by the ledger. `interrupted` is the body that ran twice. */
export async function expectOneOrder(
  sql: Client,
  workers: Workers,
  workflowId: string,
  outcome: unknown,
  interrupted?: string,
): Promise<void> {
  const runs = workers.runsOf(workflowId);
  expect(runs.map(({ name }) => name).sort()).toEqual([...BODIES, ...(interrupted ? [interrupted] : [])].sort());
  // The last run of each body is the one whose result counts: an earlier one was never recorded.
  const lastTicket = (name: string): number =>
    Math.max(...runs.filter((run) => run.name === name).map(({ ticket }) => ticket));
  expect(outcome).toEqual(BODIES.map((name) => `${name} #${String(lastTicket(name))}`));
  const record = await snapshot(sql, workflowId);
  expect(record.workflow_status.map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS']);
  expect(record.workflow_outcome).toHaveLength(2);
  expect(record.workflow_input).toHaveLength(2);
  expect(record.step_result.map(({ name }) => name).sort()).toEqual([
    'child',
    'child step',
    'first',
    'second',
    'sleep',
  ]);
  expect(record.step_intent.map(({ kind }) => kind).sort()).toEqual(['sleep', 'workflow']);
  expect(record.workflow_ownership.filter(({ ended_at }) => ended_at === null)).toEqual([]);
}
