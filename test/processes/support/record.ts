import type { Client } from 'pg';

const TABLES = [
  'workflow_status',
  'workflow_input',
  'workflow_outcome',
  'step_result',
  'step_intent',
  'ended_ownership',
  'workflow_ownership',
] as const;

export type TableName = (typeof TABLES)[number];

export type Snapshot = Readonly<Record<TableName, readonly Readonly<Record<string, unknown>>[]>>;

/** Everything that is recorded of a workflow and its children, down to the transaction that wrote each row. */
export async function snapshot(sql: Client, workflowId: string): Promise<Snapshot> {
  const all: [TableName, Record<string, unknown>[]][] = [];
  for (const table of TABLES) {
    const { rows } = await sql.query<Record<string, unknown>>(
      `SELECT t.*${table === 'workflow_ownership' ? '' : ', t.xmin::text'} FROM holdfast.${table} t WHERE starts_with(workflow_id, $1) ORDER BY t::text`,
      [workflowId],
    );
    all.push([table, rows]);
  }
  return Object.fromEntries(all) as unknown as Snapshot;
}
