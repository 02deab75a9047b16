import { DriverConfigurationError } from '../errors/database-errors.js';
import type { Driver } from './driver.js';
import { DEFAULT_CONNECT_TIMEOUT_MS, DEFAULT_MAX_CONNECTIONS, type DriverOptions } from './driver-options.js';
import type { OpenListener } from './listener.js';
import { PostgresConnection, type PostgresConnectionOptions, type PostgresTarget } from './postgres-connection.js';
import { type CallersSql, loadPostgres, type PostgresSettings } from './postgres-library.js';
import { PostgresSession } from './postgres-session.js';
import { SessionPool } from './session-pool.js';
import { SessionDriver } from './session-driver.js';

/** Options of {@link createPostgresDriver}: either a connection string, or the caller's own `sql`. */
export interface PostgresDriverOptions extends DriverOptions {
  readonly connectionString?: string;
  /**
   * The caller's own `sql`. Its settings are used, types and hooks included, so that the client of a transaction is like
   * the caller's; its connections are not. The driver opens its own ones, as many as `maxConnections` or else the
   * caller's `max` says, and neither ends the caller's `sql` nor ends with it. Why: see {@link PostgresConnection}.
   */
  readonly sql?: CallersSql;
}

/**
 * Talks to PostgreSQL through porsager's `postgres`.
 * @throws DriverConfigurationError when `postgres` is not installed, or `sql` renames columns or rewrites rows.
 */
export async function createPostgresDriver(options: PostgresDriverOptions): Promise<Driver> {
  const target = targetOf(options);
  const postgres = await loadPostgres();
  const connectTimeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
  const settings = { postgres, target, connectTimeoutMs };
  const callersMax = typeof target === 'string' ? undefined : target.max;
  const limits = { max: options.maxConnections ?? callersMax ?? DEFAULT_MAX_CONNECTIONS, connectTimeoutMs };
  const pool = new SessionPool(limits, (events) => new PostgresSession(settings, events));
  const listener = openListener({ ...settings, target: options.listenConnectionString ?? target });
  return new SessionDriver('postgres', pool, listener, options);
}

function targetOf({ sql, connectionString }: PostgresDriverOptions): PostgresTarget {
  if (sql !== undefined) {
    const settings = sql.options as PostgresSettings;
    const { column, row } = settings.transform;
    // Statements of our own would come back with other names than they asked for.
    if (column.from !== undefined || row.from !== undefined) {
      throw new DriverConfigurationError(
        'This sql transforms column names or rows. Pass a connectionString, or another sql without those transforms.',
      );
    }
    return settings;
  }
  if (connectionString === undefined) {
    throw new DriverConfigurationError('A postgres driver needs a connectionString or an sql.');
  }
  return connectionString;
}

function openListener(settings: Omit<PostgresConnectionOptions, 'onClosed' | 'onNotification'>): OpenListener {
  return (events) => {
    const connection = new PostgresConnection({
      ...settings,
      onNotification: events.onNotification,
      onClosed: () => {
        events.onClosed(new Error('The listening connection was closed.'));
      },
    });
    const run = (text: string): Promise<unknown> =>
      connection.sql.unsafe(text, [], { prepare: false, simple: true }).raw();
    return {
      connect: async () => {
        await connection.open('SELECT 1');
      },
      run,
      destroy: () => {
        connection.destroy();
      },
    };
  };
}
