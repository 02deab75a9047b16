import { DriverConfigurationError } from '../errors/database-errors.js';
import type { Driver } from './driver.js';
import type { DriverOptions } from './driver-options.js';
import { createPgDriver } from './pg-driver.js';
import type { PgPool } from './pg-library.js';
import { createPostgresDriver } from './postgres-driver.js';
import type { CallersSql } from './postgres-library.js';

/** What a driver can be opened on: a connection string, a `pg` pool, or porsager's `sql`. */
export type DriverTarget = string | PgPool | CallersSql;

/**
 * Opens a driver on whatever the application has. For a connection string, `pg` is taken if it is installed, else
 * `postgres`: with `pg` a statement that is not prepared takes one round trip, with `postgres` two.
 * @throws DriverConfigurationError when no library is installed, or `target` is neither.
 */
export async function openDriver(target: DriverTarget, options: DriverOptions = {}): Promise<Driver> {
  if (isPostgresSql(target)) return createPostgresDriver({ ...options, sql: target });
  if (isPgPool(target)) return createPgDriver({ ...options, pool: target });
  if (typeof target !== 'string') {
    throw new DriverConfigurationError(
      "A database is given as a connection string, a Pool of 'pg' (a single client is none), or an sql of 'postgres'.",
    );
  }
  try {
    return await createPgDriver({ ...options, connectionString: target });
  } catch (pgError) {
    if (!(pgError instanceof DriverConfigurationError)) throw pgError;
    try {
      return await createPostgresDriver({ ...options, connectionString: target });
    } catch (postgresError) {
      if (!(postgresError instanceof DriverConfigurationError)) throw postgresError;
      throw new DriverConfigurationError(
        "Neither 'pg' nor 'postgres' could be loaded. Install one: npm install pg. With a bundler, mark it and holdfast as external.",
        { cause: new AggregateError([pgError, postgresError]) },
      );
    }
  }
}

/** What `isConnectionString` refuses. It may hold a password, and is not repeated. */
export const NO_CONNECTION_STRING =
  'must be a connection string: it begins with postgresql://, postgres:// or socket:, or is the path of a socket, and special ' +
  'characters in user and password are percent-encoded (encodeURIComponent)';

const SCHEME = /^(?:postgres(?:ql)?:\/\/|socket:)/i;
/** What no `@` follows: a comma may be in a password, too. */
const OTHER_HOSTS = /,[^@/?#]*(?=[/?#]|$)/;

/**
 * Whether the libraries can read it. `pg` would take any other text for the name of a host, and wait for that; and what cannot be
 * parsed at all, `postgres` repeats in its error, with the password.
 */
export function isConnectionString(text: string): boolean {
  if (text.startsWith('/')) return true;
  // A URL has one host, and one at all where it has a user; the libraries take several, and none.
  return SCHEME.test(text) && URL.canParse(text.replace('@/', '@host/').replace(OTHER_HOSTS, ''));
}

/** By shape, since the application may have another copy of the library. */
export function isPgPool(target: unknown): target is PgPool {
  if (typeof target !== 'object' || target === null) return false;
  const { connect, query, totalCount } = target as Record<string, unknown>;
  return typeof connect === 'function' && typeof query === 'function' && typeof totalCount === 'number';
}

/** By shape, since the application may have another copy of the library. */
export function isPostgresSql(target: unknown): target is CallersSql {
  if (typeof target !== 'function') return false;
  const { begin, unsafe } = target as unknown as Record<string, unknown>;
  return typeof begin === 'function' && typeof unsafe === 'function';
}
