import { Admin } from '../../../src/admin/admin.js';
import type { Driver, SqlParameter, SqlRow } from '../../../src/drivers/driver.js';
import { createPgDriver } from '../../../src/drivers/pg-driver.js';
import { systemRuntime } from '../../../src/runtime/system-runtime.js';
import { PostgresAdminStore } from '../../../src/store/postgres/postgres-admin-store.js';
import { migrateSchema } from '../../../src/store/postgres/migrate.js';
import { decodeValue, encodeError, encodeValue } from '../../../src/values/index.js';
import { createTestDatabase } from '../../support/database.js';

export const SCHEMA = 'holdfast';
export const CANCELLED_ERROR = encodeValue('cancelled');

/** A database with the schema, an Admin on it, and what tests look at it with. */
export interface AdminBench extends AsyncDisposable {
  readonly driver: Driver;
  readonly url: string;
  readonly admin: Admin;
  readonly store: PostgresAdminStore;
  query<Row extends SqlRow>(text: string, parameters?: readonly SqlParameter[]): Promise<readonly Row[]>;
  /** All tables, whole: what was refused has changed nothing. `without` leaves tables out. */
  snapshot(options?: { readonly without?: readonly string[] }): Promise<string>;
  close(): Promise<void>;
}

export const TABLES = [
  'workflow_status',
  'workflow_input',
  'workflow_outcome',
  'step_result',
  'step_intent',
  'workflow_ownership',
  'executor',
  'admin_audit',
] as const;

export async function openAdminBench(): Promise<AdminBench> {
  const database = await createTestDatabase();
  const driver = await createPgDriver({ connectionString: database.url, maxConnections: 20 });
  await migrateSchema(driver, { schema: SCHEMA });
  const store = new PostgresAdminStore({ driver, schema: SCHEMA });
  const query = <Row extends SqlRow>(text: string, parameters: readonly SqlParameter[] = []) =>
    driver.query<Row>(text.replaceAll('@', `"${SCHEMA}".`), parameters);
  const close = async (): Promise<void> => {
    await store.close();
    await driver.close();
    await database.drop();
  };
  return {
    driver,
    url: database.url,
    admin: adminOn(store),
    store,
    query,
    snapshot: async ({ without = [] } = {}) => {
      const parts = TABLES.filter((table) => !without.includes(table)).map(
        (table) => `SELECT '${table}' AS name, t::text AS row FROM @${table} t`,
      );
      const rows = await query(`SELECT name, row FROM (${parts.join(' UNION ALL ')}) a ORDER BY name, row`);
      return JSON.stringify(rows, undefined, 1);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

export function adminOn(store: PostgresAdminStore): Admin {
  return new Admin({
    runtime: systemRuntime,
    store,
    cancelledError: CANCELLED_ERROR,
    decode: (text) => decodeValue(text),
    encode: (value) => encodeValue(value),
    encodeError: (thrown) => encodeError(thrown),
  });
}
