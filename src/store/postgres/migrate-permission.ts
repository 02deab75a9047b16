import type { Driver } from '../../drivers/driver.js';
import { DatabaseError } from '../../errors/database-errors.js';
import { SchemaPermissionError } from '../../errors/schema-errors.js';

const INSUFFICIENT_PRIVILEGE = '42501';

interface Rights extends Readonly<Record<string, unknown>> {
  readonly role: string;
  readonly database: string;
  readonly schema_exists: boolean;
  readonly create_on_database: boolean;
  readonly usage_on_schema: boolean;
  readonly create_on_schema: boolean;
  readonly table_exists: boolean;
  readonly select_on_table: boolean;
  readonly usage_on_language: boolean;
  /** Roles that own something in the schema, and whose rights ours does not have. */
  readonly other_owners: readonly string[];
}

const SELECT_RIGHTS = `SELECT current_user::text AS role, current_database()::text AS database,
  n.oid IS NOT NULL AS schema_exists,
  has_database_privilege(current_database(), 'CREATE') AS create_on_database,
  coalesce(has_schema_privilege(n.oid, 'USAGE'), false) AS usage_on_schema,
  coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS create_on_schema,
  c.oid IS NOT NULL AS table_exists,
  coalesce(has_table_privilege(c.oid, 'SELECT'), false) AS select_on_table,
  has_language_privilege('plpgsql', 'USAGE') AS usage_on_language,
  ARRAY(
    SELECT DISTINCT pg_get_userbyid(o.owner)::text
      FROM (SELECT relowner FROM pg_class WHERE relnamespace = n.oid
            UNION SELECT proowner FROM pg_proc WHERE pronamespace = n.oid) AS o (owner)
     WHERE NOT pg_has_role(o.owner, 'USAGE')
  ) AS other_owners
FROM (VALUES ($1::name)) AS wanted (schema)
LEFT JOIN pg_namespace n ON n.nspname = wanted.schema
LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'migration'`;

/** What the role tried to do. `read-first`: to read, in order to migrate if something is missing. */
export type Attempt = 'read' | 'read-first' | 'migrate';

/** Whether the server refused for want of a right. */
export function isPermissionFailure(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.sqlState === INSUFFICIENT_PRIVILEGE;
}

/** Finds out which right is missing, which the server's own message does not say in full. */
export async function explainPermission(
  driver: Driver,
  schema: string,
  attempt: Attempt,
  failure: DatabaseError,
): Promise<SchemaPermissionError> {
  const [rights] = await driver.transaction(
    async (transaction) => {
      await transaction.query('SET LOCAL search_path = pg_catalog, pg_temp');
      return transaction.query<Rights>(SELECT_RIGHTS, [schema]);
    },
    { access: 'read only' },
  );
  // Where there is nothing to read, the right to read alone would only lead to the next refusal.
  const what = attempt === 'read-first' ? (rights?.table_exists === true ? 'read' : 'migrate') : attempt;
  const grants = rights === undefined ? [] : missingGrants(rights, schema, what);
  const who = rights === undefined ? 'The database role' : `The database role ${quote(rights.role)}`;
  const remedy =
    grants.length === 0
      ? 'Let an administrator give it the right that the message names.'
      : `Let an administrator run: ${grants.map((grant) => `${grant};`).join(' ')}`;
  const alternative =
    what === 'migrate' ? ' Or let them run the migration itself, as renderMigrationSql() returns it.' : '';
  return new SchemaPermissionError(
    `${who} may not ${what} the schema "${schema}": ${failure.message}. ${remedy}${alternative}`,
    grants,
    { cause: failure },
  );
}

function missingGrants(rights: Rights, schema: string, attempt: 'read' | 'migrate'): string[] {
  const to = `TO ${quote(rights.role)}`;
  const grants: string[] = [];
  if (attempt === 'migrate' && !rights.schema_exists) {
    if (!rights.create_on_database) grants.push(`GRANT CREATE ON DATABASE ${quote(rights.database)} ${to}`);
  } else {
    const needed = [
      ...(rights.usage_on_schema ? [] : ['USAGE']),
      ...(attempt === 'read' || rights.create_on_schema ? [] : ['CREATE']),
    ];
    if (needed.length > 0) grants.push(`GRANT ${needed.join(', ')} ON SCHEMA ${quote(schema)} ${to}`);
  }
  if (attempt === 'migrate') {
    // Nothing less lets a role alter a table or replace a function.
    for (const owner of rights.other_owners) grants.push(`GRANT ${quote(owner)} ${to}`);
    if (!rights.usage_on_language) grants.push(`GRANT USAGE ON LANGUAGE plpgsql ${to}`);
  } else if (rights.table_exists && !rights.select_on_table) {
    grants.push(`GRANT SELECT ON ${quote(schema)}.migration ${to}`);
  }
  return grants;
}

function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
