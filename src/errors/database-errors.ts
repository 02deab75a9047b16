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
  /**
   * SQLSTATE, where it was the server that refused the connection: `53300` (too many connections) and `57P03` (starting
   * up) pass, `28P01` (password) and `3D000` (no such database) do not.
   */
  readonly sqlState: string | undefined;

  constructor(message: string, options: HoldfastErrorOptions & { readonly sqlState?: string | undefined } = {}) {
    super(message, options);
    this.sqlState = options.sqlState;
  }
}

/** The pool that Holdfast was given has been ended by whoever it belongs to: nothing was sent, and never will be. */
export class PoolEndedError extends HoldfastError {
  override readonly code = 'POOL_ENDED';
  override readonly name = 'PoolEndedError';
}

/** No usable client library, or a pool or setting that Holdfast cannot work with. Waiting does not help. */
export class DriverConfigurationError extends HoldfastError {
  override readonly code = 'DRIVER_CONFIGURATION';
  override readonly name = 'DriverConfigurationError';
}
