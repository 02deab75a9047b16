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
