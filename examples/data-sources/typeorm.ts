import type { DataSource, EntityManager } from 'typeorm';
import type { DataSourceAdapter } from '../../src/index.js';

const LEVELS = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
} as const;

export function typeormAdapter(dataSource: DataSource): DataSourceAdapter<EntityManager> {
  return {
    transaction: (body, { isolation, readOnly }) =>
      dataSource.transaction(LEVELS[isolation], async (manager) => {
        if (readOnly) await manager.query('SET TRANSACTION READ ONLY');
        return body(manager);
      }),
    query: (manager, statement, parameter) => manager.query<unknown[]>(statement, [parameter]),
  };
}
