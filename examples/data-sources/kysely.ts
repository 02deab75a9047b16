import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import type { DataSourceAdapter } from '../../src/index.js';

export function kyselyAdapter<Database>(db: Kysely<Database>): DataSourceAdapter<Transaction<Database>> {
  return {
    transaction: (body, { isolation, readOnly }) =>
      db
        .transaction()
        .setIsolationLevel(isolation)
        .setAccessMode(readOnly ? 'read only' : 'read write')
        .execute(body),
    async query(transaction, statement, parameter) {
      const { rows } = await transaction.executeQuery(CompiledQuery.raw(statement, [parameter]));
      return rows;
    },
  };
}
