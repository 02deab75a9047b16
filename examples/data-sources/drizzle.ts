import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DataSourceAdapter } from '../../src/index.js';

type Schema = Record<string, unknown>;
/** What `db.transaction` passes: what `transaction(source).client` is. */
type Transaction = Parameters<Parameters<NodePgDatabase<Schema>['transaction']>[0]>[0];

/** Drizzle on node-postgres. Its other drivers for PostgreSQL differ in what `execute` returns. */
export function drizzleAdapter(db: NodePgDatabase<Schema>): DataSourceAdapter<Transaction> {
  return {
    transaction: (body, { isolation, readOnly }) =>
      db.transaction(body, { isolationLevel: isolation, accessMode: readOnly ? 'read only' : 'read write' }),
    async query(transaction, statement, parameter) {
      const [before = '', after = ''] = statement.split('$1');
      const { rows } = await transaction.execute(sql`${sql.raw(before)}${parameter}${sql.raw(after)}`);
      return rows;
    },
  };
}
