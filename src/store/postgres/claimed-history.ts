import type { SqlParameter, SqlRow } from '../../drivers/driver.js';
import type { ClaimedWorkflow } from '../store.js';
import { type ClaimRow, type HistoryRow, toClaimed } from './rows.js';

/** Stands after the history: the server that it is from knows the claim. */
interface KnownClaimRow extends SqlRow {
  readonly workflow_id: string;
  readonly seq: null;
}

type Ask = <Row extends SqlRow>(
  prepare: string,
  text: string,
  parameters: readonly SqlParameter[],
) => Promise<readonly Row[]>;

/**
 * What was claimed, with what it has recorded so far.
 *
 * The connection may lead to another server than the claim's: to a primary that was replaced and does not know it. What that
 * one has is no history to run on, so the server is asked in the same breath whether it knows the claim. What it does not know
 * is left out, and given back later, like every claim whose answer was lost.
 */
export async function withHistory(claimed: readonly ClaimRow[], schema: string, ask: Ask): Promise<ClaimedWorkflow[]> {
  const replayed = claimed.filter((row) => row.has_history);
  if (replayed.length === 0) return toClaimed(claimed, []);
  const rows = await ask<HistoryRow | KnownClaimRow>(
    'holdfast_load_history',
    `SELECT workflow_id, seq, name, kind, complete, output, error, attempts, child_id, remaining_ms,
            record_version::float8 AS record_version
       FROM "${schema}".load_history($1::text[])
      UNION ALL
     SELECT ($1::text[])[item], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
       FROM "${schema}".verify_ownership($1::text[], $2::uuid[])`,
    [replayed.map((row) => row.workflow_id), replayed.map((row) => row.token)],
  );
  const known = new Set(rows.filter((row) => row.seq === null).map((row) => row.workflow_id));
  return toClaimed(
    claimed.filter((row) => !row.has_history || known.has(row.workflow_id)),
    rows.filter((row): row is HistoryRow => row.seq !== null),
  );
}
