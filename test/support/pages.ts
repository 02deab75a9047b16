import { defaultSchema } from './conditions.js';

/** Runs a statement on the one session that is measured; `@` before a name stands for the schema where the caller's does. */
type Ask = <Row extends Record<string, unknown>>(text: string, parameters?: unknown[]) => Promise<Row[]>;

/**
 * Pages of the schema's tables, and of their indexes, that this session has touched since the server last took its counters away,
 * which happens between transactions. Not those of the catalogue: a session that has to read it again, because others changed many
 * tables at once, reads a thousand.
 */
const TOUCHED = `
  WITH tables AS (SELECT oid, reltoastrelid FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r')
  SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(relation)), 0)::int AS pages
    FROM (SELECT oid FROM tables
          UNION ALL SELECT reltoastrelid FROM tables WHERE reltoastrelid <> 0
          UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM tables)) AS relations (relation)`;

/** Pages of Holdfast's tables and indexes that the calls touch, the statements inside of functions included. In a transaction. */
export async function pagesOf(
  ask: Ask,
  calls: () => Promise<unknown>,
  { schema = defaultSchema(), end = 'COMMIT' }: { readonly schema?: string; readonly end?: 'COMMIT' | 'ROLLBACK' } = {},
): Promise<number> {
  const touched = async (): Promise<number> => (await ask<{ pages: number }>(TOUCHED, [schema]))[0]?.pages ?? NaN;
  await ask('BEGIN');
  const before = await touched();
  await calls();
  const pages = (await touched()) - before;
  await ask(end);
  return pages;
}
