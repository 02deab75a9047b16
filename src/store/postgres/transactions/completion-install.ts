import type { Driver } from '../../../drivers/driver.js';
import { DEFAULT_COMPLETION_SCHEMA } from '../../../api/data-source.js';
import { assertSchemaName } from '../migrate-schema-name.js';
import { loadCompletionSql } from '../sql-files.js';

/**
 * What `launch` would run for a data source that is another database than Holdfast's, as one text and one transaction, for
 * databases that somebody else migrates. It can be run again at any time, and is to be run again with each release.
 *
 * @param schema Default `holdfast_completion`.
 * @throws InvalidSchemaNameError for a name that cannot be used.
 */
export async function renderCompletionSql(schema: string = DEFAULT_COMPLETION_SCHEMA): Promise<string> {
  assertSchemaName(schema);
  return `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
${statementsOf(schema, await loadCompletionSql())}
COMMIT;
`;
}

export async function installCompletions(driver: Driver, schema: string): Promise<void> {
  const sql = await loadCompletionSql();
  await driver.transaction(async (transaction) => {
    const [found] = await transaction.query<{ is_there: boolean }>(
      `SELECT to_regnamespace('"${schema}"') IS NOT NULL AND EXISTS (
         SELECT FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
          WHERE n.nspname = '${schema}' AND f.proname = 'record_completion') AS is_there`,
    );
    if (found?.is_there !== true) await transaction.query(statementsOf(schema, sql));
  });
}

/** One process at a time; a role that may not create schemas can use one that is there. */
function statementsOf(schema: string, sql: string): string {
  return `SELECT pg_advisory_xact_lock(hashtextextended('holdfast.completion.${schema}', 0));
DO $$ BEGIN IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF; END $$;
SET LOCAL search_path = "${schema}", pg_temp;
SET LOCAL client_min_messages = warning;
${sql}`;
}
