import type { Driver } from '../../../drivers/driver.js';
import { DEFAULT_COMPLETION_SCHEMA } from '../../../api/data-source.js';
import { SchemaTooNewError } from '../../../errors/schema-errors.js';
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

/** What sql/completion/completion.sql calls itself. */
export const COMPLETION_VERSION = 1;

/** Answers with the version that is in the schema $1; 0 for none that this role can use. */
export const READ_COMPLETION_VERSION = `SELECT coalesce(max(substring(f.prosrc FROM '[0-9]+')::int4), 0)::text AS reply
  FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
 WHERE n.nspname = $1::text AND f.proname = 'completion_version' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')`;

/**
 * Creates the table of completions and its functions, or replaces older ones.
 * @throws SchemaTooNewError
 */
export async function installCompletions(driver: Driver, schema: string): Promise<void> {
  const sql = await loadCompletionSql();
  await driver.transaction(async (transaction) => {
    const [found] = await transaction.query<{ reply: string }>(READ_COMPLETION_VERSION, [schema]);
    const version = Number(found?.reply ?? 0);
    assertNotNewer(version, schema);
    if (version < COMPLETION_VERSION) await transaction.query(statementsOf(schema, sql));
  });
}

/** @throws SchemaTooNewError */
export function assertNotNewer(version: number, schema: string): void {
  if (version <= COMPLETION_VERSION) return;
  throw new SchemaTooNewError(
    `The table of completions in schema "${schema}" is of a newer Holdfast: version ${String(version)}, this one knows ${String(COMPLETION_VERSION)}. Update the library.`,
    { databaseVersion: version, libraryVersion: COMPLETION_VERSION },
  );
}

/** One process at a time; a role that may not create schemas can use one that is there. */
function statementsOf(schema: string, sql: string): string {
  return `SELECT pg_advisory_xact_lock(hashtextextended('holdfast.completion.${schema}', 0));
DO $$ BEGIN IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF; END $$;
SET LOCAL search_path = "${schema}", pg_temp;
SET LOCAL client_min_messages = warning;
${sql}`;
}
