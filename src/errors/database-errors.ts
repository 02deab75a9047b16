import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** The server answered with an error: nothing of the statement took effect. */
export class DatabaseError extends HoldfastError {
  override readonly code = 'DATABASE_ERROR';
  override readonly name = 'DatabaseError';
  /** The five characters that PostgreSQL calls SQLSTATE, for example `40001`. */
  readonly sqlState: string;
  /** Name of the violated constraint, where the server gave one. */
  readonly constraint: string | undefined;

  constructor(
    message: string,
    details: { readonly sqlState: string; readonly constraint?: string | undefined },
    options?: HoldfastErrorOptions,
  ) {
    super(message, options);
    this.sqlState = details.sqlState;
    this.constraint = details.constraint;
  }
}

/** The connection broke, or no answer came in time: whether the statement took effect is unknown. */
export class ConnectionLostError extends HoldfastError {
  override readonly code = 'CONNECTION_LOST';
  override readonly name = 'ConnectionLostError';
}

/** No connection could be had in time: nothing was sent, so nothing took effect. */
export class ConnectionUnavailableError extends HoldfastError {
  override readonly code = 'CONNECTION_UNAVAILABLE';
  override readonly name = 'ConnectionUnavailableError';
}
