import { ConnectionLostError, ConnectionUnavailableError, DatabaseError } from '../../errors/database-errors.js';

/**
 * SQLSTATE classes and codes after which the same statement may succeed. Everything else is the statement's own fault
 * and would fail again.
 */
const TRANSIENT_CLASSES = new Set([
  '08', // connection exception
  '40', // transaction rollback: serialisation failure, deadlock
  '53', // insufficient resources: disk full, out of memory, too many connections
  '57', // operator intervention: admin shutdown, crash shutdown, cannot connect now, query cancelled
  '58', // system error: input/output error outside PostgreSQL
]);
const TRANSIENT_CODES = new Set([
  '25006', // read-only transaction: a demoted primary, until the pool finds the new one
  '55P03', // lock not available
  '55006', // object in use
]);

/** Whether waiting and sending the same again is the right answer. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionLostError || error instanceof ConnectionUnavailableError) {
    return true;
  }
  return (
    error instanceof DatabaseError &&
    (TRANSIENT_CODES.has(error.sqlState) || TRANSIENT_CLASSES.has(error.sqlState.slice(0, 2)))
  );
}

/**
 * The server is there and does not let us in: wrong password (class 28) or no such database (3D000). Only a launch gives up
 * at that; while running, an operator may be about to put it right.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof ConnectionUnavailableError && /^(?:28|3D)/.test(error.sqlState ?? '');
}

/**
 * SQLSTATEs of a statement that took too long: because of one of its items, which waits for somebody, or because there are
 * too many of them. Sent again as it is, it may take too long for ever.
 */
const HELD_UP_CODES = new Set([
  '55P03', // lock not available: lock_timeout
  '57014', // query cancelled: statement_timeout, or an operator
]);

/** Whether the statement is to be split before it is sent again. */
export function isHeldUp(error: unknown): boolean {
  return error instanceof DatabaseError && HELD_UP_CODES.has(error.sqlState);
}
