import { join } from 'node:path';
import type { HoldfastOptions } from './holdfast-options.js';
import type { Logger } from './api/logger.js';
import type { Driver } from './drivers/driver.js';
import { startEmbeddedPostgres } from './drivers/embedded-postgres.js';
import { openDriver, type DriverTarget } from './drivers/open-driver.js';
import { ConnectionUnavailableError } from './errors/database-errors.js';
import type { LaunchDeadline } from './launch-deadline.js';
import type { LaunchSettings } from './launch-options.js';
import { backoffMs, pause } from './store/postgres/backoff.js';
import { migrateSchema } from './store/postgres/migrate.js';
import { assertSchemaName } from './store/postgres/migrate-schema-name.js';
import { checkServer } from './store/postgres/server-checks.js';
import { isTransient } from './store/postgres/transient-errors.js';

/** A database that is ready for work, and how to let go of it. */
export interface OpenDatabase {
  readonly driver: Driver;
  /** Stops the embedded server, if there is one. */
  readonly stop: () => Promise<void>;
}

/** What the opening of a database can be given. */
export type DatabaseOptions = Pick<
  HoldfastOptions,
  'database' | 'listenDatabase' | 'maxConnections' | 'migrate' | 'allowAsynchronousCommit'
>;

/**
 * Opens the database that the options name, waits until it can be reached, checks the server and the schema.
 * @throws LaunchTimeoutError, the reason of the deadline's signal, and whatever the checks find.
 */
export async function openDatabase(
  options: DatabaseOptions,
  settings: Pick<LaunchSettings, 'schema'>,
  deadline: LaunchDeadline,
  logger: Logger,
): Promise<OpenDatabase> {
  assertSchemaName(settings.schema);
  const { target, stop } = await findDatabase(options);
  const driver = await openDriver(target, {
    ...(options.maxConnections === undefined ? {} : { maxConnections: options.maxConnections }),
    ...(options.listenDatabase === undefined ? {} : { listenConnectionString: options.listenDatabase }),
  });
  try {
    await waitUntilReady(driver, options, settings, deadline, logger);
    return { driver, stop };
  } catch (error) {
    await driver.close();
    await stop();
    throw error;
  }
}

async function findDatabase(
  options: DatabaseOptions,
): Promise<{ readonly target: DriverTarget; readonly stop: () => Promise<void> }> {
  const target = options.database ?? process.env['DATABASE_URL'];
  if (target !== undefined && target !== '') return { target, stop: () => Promise.resolve() };
  const server = await startEmbeddedPostgres({ dataDir: join('.holdfast', 'postgres') });
  return { target: server.connectionString, stop: () => server.stop() };
}

/**
 * The server is there and does not let us in: wrong password (class 28) or no such database (3D000). Only a launch gives up
 * at that; while running, an operator may be about to put it right.
 */
function isRefusal(error: unknown): boolean {
  return error instanceof ConnectionUnavailableError && /^(?:28|3D)/.test(error.sqlState ?? '');
}

async function waitUntilReady(
  driver: Driver,
  options: DatabaseOptions,
  { schema }: Pick<LaunchSettings, 'schema'>,
  deadline: LaunchDeadline,
  logger: Logger,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    deadline.signal.throwIfAborted();
    try {
      const { warnings } = await checkServer(driver, {
        allowAsynchronousCommit: options.allowAsynchronousCommit ?? false,
      });
      for (const { code, message } of warnings) logger.warn(message, { code });
      await migrateSchema(driver, { schema, migrate: options.migrate ?? true });
      return;
    } catch (error) {
      if (!isTransient(error) || isRefusal(error)) throw error;
      if (deadline.left === 0) throw deadline.error(error);
      await pause(Math.min(backoffMs(attempt), deadline.left), deadline.signal);
    }
  }
}
