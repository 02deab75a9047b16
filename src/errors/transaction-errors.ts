import { HoldfastError } from './holdfast-error.js';

/** A transaction met serialisation failures or deadlocks at every try. The last one is the `cause`; nothing took effect. */
export class TransactionConflictError extends HoldfastError {
  override readonly code = 'TRANSACTION_CONFLICT';
  override readonly name = 'TransactionConflictError';
}

/** The body committed or rolled back the transaction that it was given. What it committed stays, without a record of it. */
export class TransactionEndedError extends HoldfastError {
  override readonly code = 'TRANSACTION_ENDED';
  override readonly name = 'TransactionEndedError';
}

/** A statement of the body failed, the body went on without it, and the server had given up the transaction by then. */
export class TransactionAbortedError extends HoldfastError {
  override readonly code = 'TRANSACTION_ABORTED';
  override readonly name = 'TransactionAbortedError';
}

/** Inside the body of a transaction something was called that cannot be a part of it. */
export class InsideTransactionError extends HoldfastError {
  override readonly code = 'INSIDE_TRANSACTION';
  override readonly name = 'InsideTransactionError';
}

/** A data source is not one that this Holdfast was launched with, or not what the protocol needs. */
export class DataSourceError extends HoldfastError {
  override readonly code = 'DATA_SOURCE_INVALID';
  override readonly name = 'DataSourceError';
}
