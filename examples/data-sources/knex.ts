import type { Knex } from 'knex';
import type { DataSourceAdapter } from '../../src/index.js';

export function knexAdapter(knex: Knex): DataSourceAdapter<Knex.Transaction> {
  return {
    transaction: (body, { isolation, readOnly }) => knex.transaction(body, { isolationLevel: isolation, readOnly }),
    async query(transaction, statement, parameter) {
      // Its own placeholder is a question mark.
      const { rows } = await transaction.raw<{ rows: unknown[] }>(statement.replace('$1', '?'), [parameter]);
      return rows;
    },
  };
}
