import { DataSourceError } from '../errors/transaction-errors.js';
import type { TransactionStore } from '../store/transaction-store.js';

/** For stores that are no database: a body that was to run in a transaction must not run outside of one. */
export const NO_TRANSACTIONS: TransactionStore = {
  run: () =>
    Promise.resolve({
      kind: 'failed',
      error: new DataSourceError('This store is no database: it runs no transactions.'),
    }),
  decideFailure: ({ record }) => Promise.resolve({ kind: 'to-record', record, isOwn: true }),
  commitsElsewhere: () => false,
  lookUp: () => Promise.resolve({ kind: 'nothing' }),
};
