import { join } from 'node:path';
import type { HoldfastOptions } from './holdfast-options.js';
import type { Logger } from './api/logger.js';
import type { Driver } from './drivers/driver.js';
import { startEmbeddedPostgres } from './drivers/embedded-postgres.js';
import { isConnectionString, NO_CONNECTION_STRING, openDriver, type DriverTarget } from './drivers/open-driver.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import { THE_DATABASE, type LaunchDeadline } from './launch-deadline.js';
import type { LaunchSettings } from './launch-options.js';
import { isSchemaCurrent, migrateSchema } from './store/postgres/migrate.js';
import { assertSchemaName } from './store/postgres/migrate-schema-name.js';
import { checkServer } from './store/postgres/server-checks.js';
import { isRefusal, isTransient } from './store/postgres/transient-errors.js';

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
  const { target, stop } = await findUnlessAborted(options, deadline);
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

/** The first start of an embedded server takes as long as it takes. */
async function findUnlessAborted(options: DatabaseOptions, deadline: LaunchDeadline): Promise<FoundDatabase> {
  deadline.signal.throwIfAborted();
  const finding = findDatabase(options);
  try {
    return await deadline.unlessAborted(finding);
  } catch (error) {
    // A server that comes up after that is nobody's.
    void finding.then(
      ({ stop }) => stop(),
      () => undefined,
    );
    throw error;
  }
}

interface FoundDatabase {
  readonly target: DriverTarget;
  readonly stop: () => Promise<void>;
}

async function findDatabase(options: DatabaseOptions): Promise<FoundDatabase> {
  const target = options.database ?? process.env['DATABASE_URL'];
  if (target !== undefined && target !== '') {
    if (typeof target === 'string' && !isConnectionString(target)) {
      throw new InvalidArgumentError(`The environment variable DATABASE_URL ${NO_CONNECTION_STRING}.`);
    }
    return { target, stop: () => Promise.resolve() };
  }
  const server = await startEmbeddedPostgres({ dataDir: join('.holdfast', 'postgres') });
  return { target: server.connectionString, stop: () => server.stop() };
}

async function waitUntilReady(
  driver: Driver,
  options: DatabaseOptions,
  { schema }: Pick<LaunchSettings, 'schema'>,
  deadline: LaunchDeadline,
  logger: Logger,
): Promise<void> {
  const { allowAsynchronousCommit = false, migrate = true } = options;
  await deadline.insist(
    THE_DATABASE,
    async () => {
      const { warnings } = await deadline.bound(checkServer(driver, { allowAsynchronousCommit }));
      for (const { code, message } of warnings) logger.warn(message, { code });
      if (await deadline.bound(isSchemaCurrent(driver, { schema, migrate }))) return;
      // May take minutes where there is much to change: work, and no waiting for the database.
      await deadline.unlessAborted(migrateSchema(driver, { schema, migrate }));
    },
    (error) => isTransient(error) && !isRefusal(error),
  );
}
