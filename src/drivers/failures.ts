import { ConnectionLostError, ConnectionUnavailableError, DatabaseError } from '../errors/database-errors.js';
import { HoldfastError } from '../errors/holdfast-error.js';

/** What both client libraries attach to an ErrorResponse of the server, by its field names. */
export interface ServerError extends Error {
  readonly code: string;
  readonly severity: string;
  /** Name of the C function that raised it. PostgreSQL always sends it; poolers do not. */
  readonly routine?: string;
}

const SQL_STATE = /^[0-9A-Z]{5}$/;
/**
 * SQLSTATE classes and codes with which a session ends: what became of the statement is then unknown, since the server
 * may have been told to go after the commit and before the reply. `57P`: shutdown, crash, dropped database, idle session.
 * `08`: what poolers say when their own connection broke. `25P03`, `25P04`: idle-in-transaction and transaction timeout.
 */
const SESSION_OVER = /^(?:57P|08|25P0[34])/;

/**
 * Both libraries give the server's errors a `severity`; errors of theirs, of sockets and of the operating system have
 * none. The code alone would not do: `EPIPE` looks like a SQLSTATE. Classes would not do either: an application can have
 * several copies of a library.
 */
export function isServerError(error: unknown): error is ServerError {
  if (typeof error !== 'object' || error === null) return false;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof severity === 'string' && typeof code === 'string' && SQL_STATE.test(code);
}

/** Turns what a statement that was handed to a connection failed with into what the contract promises. */
export function statementFailure(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  if (!isServerError(error)) {
    return new ConnectionLostError('The connection broke before the reply arrived: the outcome is unknown.', {
      cause: error,
    });
  }
  if (SESSION_OVER.test(error.code)) {
    return new ConnectionLostError(`The session was ended (SQLSTATE ${error.code}): the outcome is unknown.`, {
      cause: error,
    });
  }
  const named = error as { constraint?: unknown; constraint_name?: unknown };
  const constraint = named.constraint ?? named.constraint_name;
  return new DatabaseError(
    error.message,
    { sqlState: error.code, constraint: typeof constraint === 'string' ? constraint : undefined },
    { cause: error },
  );
}

/** What whoever waited for a connection for so long is told. */
export function noConnectionWithin(timeoutMs: number): ConnectionUnavailableError {
  return new ConnectionUnavailableError(`No connection within ${timeoutMs} ms, nothing was sent.`);
}

/** Turns what an attempt to get a connection failed with into what the contract promises. */
export function connectionFailure(error: unknown): HoldfastError {
  if (error instanceof ConnectionUnavailableError) return error;
  const sqlState = isServerError(error) ? error.code : undefined;
  const detail = error instanceof Error && error.message !== '' ? `: ${error.message}` : '';
  return new ConnectionUnavailableError(`No database connection could be had, nothing was sent${detail}`, {
    cause: error,
    sqlState,
  });
}

/**
 * Whether a prepared statement is not, or not as expected, where the statement went: what happens behind a pooler in
 * transaction mode. All three are raised before anything is executed. `08P01` also stands for a pooler's broken
 * connection, whose outcome is unknown, hence the look at the routine that raised it.
 */
export function isPreparedStatementMismatch(error: unknown): boolean {
  if (!isServerError(error)) return false;
  if (error.code === '26000' || error.code === '42P05') return true;
  return error.code === '08P01' && error.routine === 'exec_bind_message';
}
