import type pg from 'pg';

/** Rows written by one statement. */
const ROWS = 50_000;

export interface Clones {
  /** The workflow to be copied: suspended in its sleep. */
  readonly template: string;
  /** Names of the copies: `<prefix> <number from 0>`. */
  readonly prefix: string;
  readonly count: number;
  /** When copy number `n` is due: an SQL expression of type timestamptz. */
  readonly dueAt: string;
}

/**
 * Copies everything that is on record of a workflow, many times. What a suspended workflow looks like in the tables is
 * thereby the library's own affair: the campaign knows only that rows lead with `workflow_id`, and that `wake_at` is when it is due.
 */
export async function cloneWorkflow(sql: pg.Client, { template, prefix, count, dueAt }: Clones): Promise<void> {
  const { rows: tables } = await sql.query<{ table: string; columns: string[] }>(
    `SELECT c.table_name AS table, array_agg(c.column_name::text ORDER BY c.ordinal_position) AS columns
       FROM information_schema.columns c
       JOIN information_schema.tables t USING (table_schema, table_name)
      WHERE c.table_schema = 'holdfast' AND t.table_type = 'BASE TABLE'
        -- What the database numbers itself.
        AND c.is_identity = 'NO' AND c.is_generated = 'NEVER'
      GROUP BY c.table_name
     HAVING bool_or(c.column_name = 'workflow_id')`,
  );
  for (let from = 0; from < count; from += ROWS) {
    await sql.query('BEGIN');
    for (const { table, columns } of tables) {
      const values = columns.map((column) => {
        if (column === 'workflow_id') return `$2 || ' ' || n`;
        return column === 'wake_at' ? `CASE WHEN t.wake_at IS NOT NULL THEN ${dueAt} END` : `t."${column}"`;
      });
      await sql.query(
        `INSERT INTO holdfast."${table}" (${columns.map((column) => `"${column}"`).join(', ')})
         SELECT ${values.join(', ')} FROM holdfast."${table}" t, generate_series($3::int, $4::int) n
          WHERE t.workflow_id = $1`,
        [template, prefix, from, Math.min(count, from + ROWS) - 1],
      );
    }
    await sql.query('COMMIT');
  }
}
