import { assertSchemaName } from './migrate-schema-name.js';
import {
  beginMigration,
  createBookkeeping,
  createSchema,
  recordFunctions,
  recordMigration,
} from './migrate-statements.js';
import { loadSqlFiles, type SqlFiles } from './sql-files.js';

/** What {@link renderMigrationSql} is to leave out. */
export interface RenderOptions {
  /** Version that the schema has already; its migrations are left out. Default 0: an empty database, or one with an empty schema. */
  readonly fromVersion?: number;
  /** Default: those of the installed package. */
  readonly files?: SqlFiles;
}

/**
 * All that `migrateSchema` would run, as one text and one transaction, for people whose database is migrated by someone
 * else. Applying it to a schema that has a migration already fails at that one's row and changes nothing.
 * @throws InvalidSchemaNameError for a name that cannot be used.
 */
export async function renderMigrationSql(schema: string, options: RenderOptions = {}): Promise<string> {
  assertSchemaName(schema);
  const files = options.files ?? (await loadSqlFiles());
  const { fromVersion = 0 } = options;
  const statements = [
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    beginMigration(schema),
    ...(fromVersion === 0 ? [createSchema(schema, { unlessThere: true }), createBookkeeping(schema)] : []),
    ...files.migrations
      .filter(({ version }) => version > fromVersion)
      .flatMap((migration) => [recordMigration(schema, migration, files.libraryVersion), migration.sql]),
    recordFunctions(schema, files),
    files.functions.sql,
    'COMMIT',
  ];
  return `${statements.map(terminate).join('\n\n')}\n`;
}

/** A file may end with a comment, which would swallow a semicolon on its line. */
function terminate(text: string): string {
  const statement = text.trimEnd();
  return statement.endsWith(';') ? statement : `${statement}\n;`;
}
