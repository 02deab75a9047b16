import { ConnectionLostError, ConnectionUnavailableError, PoolEndedError } from '../../../errors/database-errors.js';

/** How deep libraries wrap the server's error. */
const MOST_LAYERS = 5;
/** Prisma's name for a write conflict or a deadlock. */
const PRISMA_CONFLICT = 'P2034';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
const SQL_STATE = /^[0-9A-Z]{5}$/;

/** Where client libraries keep the error underneath. */
interface Wrapped {
  readonly code?: unknown;
  readonly sqlState?: unknown;
  readonly cause?: unknown;
  /** TypeORM. */
  readonly driverError?: unknown;
  /** Sequelize, MikroORM. */
  readonly original?: unknown;
  /** Prisma: `{ code }`, or `{ driverAdapterError: { cause: { originalCode } } }`. */
  readonly meta?: unknown;
  readonly driverAdapterError?: unknown;
  readonly originalCode?: unknown;
}

/** The SQLSTATE of the server's error that is, or is underneath, what a client library has thrown. */
export function sqlStateOf(error: unknown, layers = MOST_LAYERS): string | undefined {
  if (typeof error !== 'object' || error === null || layers === 0) return undefined;
  const { code, sqlState, originalCode, cause, driverError, original, meta, driverAdapterError } = error as Wrapped;
  if (code === PRISMA_CONFLICT) return SERIALIZATION_FAILURE;
  for (const candidate of [sqlState, originalCode, code]) {
    // Codes of Prisma (P2010) and of the operating system (EPIPE) look alike: SQLSTATEs of the classes that matter begin with a digit, or with HF.
    if (typeof candidate === 'string' && SQL_STATE.test(candidate) && /^(?:\d|HF|XX)/.test(candidate)) return candidate;
  }
  for (const inner of [driverError, original, cause, meta, driverAdapterError]) {
    const found = sqlStateOf(inner, layers - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether the same transaction, begun anew, may succeed: it lost to another one. */
export function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === SERIALIZATION_FAILURE || state === DEADLOCK;
}

/** Codes of the operating system for a server that cannot be reached, or a connection that broke. */
const NETWORK_CODE = /^E(?:CONN|TIMEDOUT|PIPE|HOST|NET|AI_AGAIN)/;
/** SQLSTATE classes and codes for a server that is, or will be back, in a moment; see transient-errors.ts. */
const PASSING_STATE = /^(?:08|53|57|58|25006|25P0[34])/;

/**
 * Whether the database was away, or the connection lost: what was not sent, or not committed, may be sent again, by another process
 * where it is the pool that was ended.
 */
export function isPassing(error: unknown): boolean {
  if (error instanceof ConnectionLostError || error instanceof ConnectionUnavailableError) return true;
  if (error instanceof PoolEndedError) return true;
  const state = sqlStateOf(error);
  if (state !== undefined) return PASSING_STATE.test(state);
  return typeof error === 'object' && error !== null && 'code' in error && NETWORK_CODE.test(String(error.code));
}
