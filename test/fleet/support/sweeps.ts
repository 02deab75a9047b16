import type { Client } from 'pg';
import type { PgProxy } from '../../support/pg-proxy.js';
import { waitUntil } from '../../support/launch.js';

/** Waits until an executor behind the proxy has looked for work again, several times: what it has not taken it will not take. */
export async function afterSweeps(proxy: PgProxy, sweeps = 3): Promise<void> {
  await afterStatements(proxy, /claim_work\(/, sweeps);
}

/** Waits until that many more of these statements have gone through the proxy. */
export async function afterStatements(proxy: PgProxy, matches: RegExp, count: number): Promise<void> {
  // One more than asked for: the first may have been sent before.
  const watched = proxy.arm({ do: 'delay', delayMs: 0 }, matches, { times: count + 1 });
  await waitUntil(() => watched.hits > count, `${String(matches)} has been sent ${String(count)} times`);
  watched.disarm();
}

export interface StatusRow {
  readonly status: string;
  readonly executor_id: string;
  readonly owner_token: string | null;
  readonly record_version: number;
  readonly epoch: number;
  readonly attempts: number;
}

export async function statusRow(sql: Client, workflowId: string): Promise<StatusRow> {
  const { rows } = await sql.query<StatusRow>(
    `SELECT status, executor_id, owner_token, record_version::int4, epoch::int4, attempts
       FROM holdfast.workflow_status WHERE workflow_id = $1`,
    [workflowId],
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`There is no workflow "${workflowId}".`);
  return row;
}

/** Gives a workflow back to whoever claims it, behind the back of the execution that runs it. */
export async function giveBack(sql: Client, workflowId: string): Promise<void> {
  await sql.query(
    `SELECT holdfast.release_workflow(workflow_id, owner_token, record_version, gen_random_uuid(), 'ENQUEUED', NULL, false,
                                      NULL, NULL)
       FROM holdfast.workflow_status WHERE workflow_id = $1`,
    [workflowId],
  );
}
