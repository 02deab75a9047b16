import type { SqlExecutor } from '../../drivers/driver.js';
import {
  DatabaseEncodingError,
  DatabaseIsReplicaError,
  DatabaseReadOnlyError,
  DatabaseTooOldError,
  SynchronousCommitOffError,
} from '../../errors/schema-errors.js';

/** Oldest major release of PostgreSQL that Holdfast supports. */
export const OLDEST_POSTGRES_RELEASE = 15;

/** What {@link checkServer} lets pass. */
export interface ServerCheckOptions {
  /**
   * Accepts `synchronous_commit = off`, with a warning. A crash of the server then takes acknowledged starts, results and
   * outcomes of the last moments back. Default `false`.
   */
  readonly allowAsynchronousCommit?: boolean;
}

/** Something that works, and of which an operator should know. */
export interface ServerWarning {
  readonly code:
    | 'ASYNCHRONOUS_COMMIT'
    | 'COMMIT_SKIPS_STANDBY'
    | 'FSYNC_OFF'
    | 'FULL_PAGE_WRITES_OFF'
    | 'READ_ONLY_OVERRIDDEN'
    | 'ISOLATION_NOT_READ_COMMITTED'
    | 'SEARCH_PATH_HIDES_CATALOG';
  readonly message: string;
}

/** What {@link checkServer} found. */
export interface ServerReport {
  /** As the server writes it, for example `15.14 (Debian 15.14-0+deb12u1)`. */
  readonly version: string;
  readonly majorVersion: number;
  readonly warnings: readonly ServerWarning[];
}

interface ServerSettings extends Readonly<Record<string, unknown>> {
  readonly version_number: number;
  readonly version: string;
  readonly is_standby: boolean;
  readonly read_only: string;
  readonly configured_read_only: string;
  readonly isolation: string;
  readonly synchronous_commit: string;
  readonly standby_names: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly encoding: string;
  readonly search_path: string;
}

/**
 * The names are qualified, the operator too, since `search_path` may put other schemas before `pg_catalog`. A driver sets
 * the modes of its sessions; what the role or the database says is in `reset_val`.
 */
const SELECT_SETTINGS = `SELECT
  pg_catalog.current_setting('server_version_num')::int4 AS version_number,
  pg_catalog.current_setting('server_version') AS version,
  pg_catalog.pg_is_in_recovery() AS is_standby,
  pg_catalog.current_setting('transaction_read_only') AS read_only,
  (SELECT s.reset_val FROM pg_catalog.pg_settings AS s
    WHERE s.name OPERATOR(pg_catalog.=) 'default_transaction_read_only') AS configured_read_only,
  pg_catalog.current_setting('transaction_isolation') AS isolation,
  pg_catalog.current_setting('synchronous_commit') AS synchronous_commit,
  pg_catalog.current_setting('synchronous_standby_names') AS standby_names,
  pg_catalog.current_setting('fsync') AS fsync,
  pg_catalog.current_setting('full_page_writes') AS full_page_writes,
  pg_catalog.current_setting('server_encoding') AS encoding,
  pg_catalog.current_setting('search_path') AS search_path`;

/**
 * Asks the server, in one round trip, whether the promises can be kept on it.
 *
 * Harmless, and not looked at: a default isolation level or access mode (drivers set both in each session or transaction),
 * the time zone (times are compared in the database), `standard_conforming_strings` (no SQL of ours has a backslash).
 *
 * @throws DatabaseTooOldError, DatabaseIsReplicaError, DatabaseReadOnlyError, DatabaseEncodingError, SynchronousCommitOffError
 */
export async function checkServer(executor: SqlExecutor, options: ServerCheckOptions = {}): Promise<ServerReport> {
  const [settings] = await executor.query<ServerSettings>(SELECT_SETTINGS);
  if (settings === undefined) throw new DatabaseTooOldError('The server does not tell its version: is it PostgreSQL?');
  refuse(settings, options);
  return {
    version: settings.version,
    majorVersion: majorVersionOf(settings),
    warnings: warningsOf(settings),
  };
}

function refuse(settings: ServerSettings, { allowAsynchronousCommit = false }: ServerCheckOptions): void {
  if (majorVersionOf(settings) < OLDEST_POSTGRES_RELEASE) {
    throw new DatabaseTooOldError(
      `The server is PostgreSQL ${settings.version}. Holdfast needs ${OLDEST_POSTGRES_RELEASE} or later: upgrade the server.`,
    );
  }
  if (settings.is_standby) {
    throw new DatabaseIsReplicaError(
      'The server is a standby, which takes no writes. Connect to the primary: with several hosts in the connection ' +
        'string, or at the address that the provider calls the writer.',
    );
  }
  if (settings.read_only !== 'off') {
    throw new DatabaseReadOnlyError(
      'The server takes no writes from this role, although it is not a standby. Look for a full disk, a maintenance ' +
        'mode of the provider, or a pooler that sets transaction_read_only.',
    );
  }
  if (settings.encoding !== 'UTF8') {
    throw new DatabaseEncodingError(
      `The database's encoding is ${settings.encoding}, which cannot hold every text. Create one with ` +
        "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
    );
  }
  if (settings.synchronous_commit === 'off' && !allowAsynchronousCommit) {
    throw new SynchronousCommitOffError(
      'synchronous_commit is off: a crash of the server would take acknowledged results back. Set it to on, for example ' +
        'ALTER ROLE … SET synchronous_commit = on; or accept that loss with allowAsynchronousCommit.',
    );
  }
}

function majorVersionOf({ version_number: number }: ServerSettings): number {
  return Math.floor(number / 10_000);
}

function warningsOf(settings: ServerSettings): ServerWarning[] {
  const { isolation, search_path: searchPath } = settings;
  const warnings: [boolean, ServerWarning['code'], string][] = [
    [
      settings.synchronous_commit === 'off',
      'ASYNCHRONOUS_COMMIT',
      'synchronous_commit is off: a crash of the server takes acknowledged results back. Accepted by allowAsynchronousCommit.',
    ],
    [
      settings.synchronous_commit === 'local' && settings.standby_names !== '',
      'COMMIT_SKIPS_STANDBY',
      'synchronous_commit is local although there are synchronous standbys: a failover takes acknowledged results back. ' +
        'Set it to on.',
    ],
    [
      settings.fsync === 'off',
      'FSYNC_OFF',
      'fsync is off: a crash of the machine may corrupt the whole database. For tests only.',
    ],
    [
      settings.full_page_writes === 'off',
      'FULL_PAGE_WRITES_OFF',
      'full_page_writes is off: a crash of the machine may corrupt pages, unless the file system writes them atomically.',
    ],
    [
      settings.configured_read_only === 'on',
      'READ_ONLY_OVERRIDDEN',
      'default_transaction_read_only is on for this role or database; Holdfast writes all the same. A provider may have ' +
        'set it because the disk is nearly full.',
    ],
    [
      isolation !== 'read committed',
      'ISOLATION_NOT_READ_COMMITTED',
      `Statements run at isolation level ${isolation}: correct, but concurrent writes fail and are repeated more often.`,
    ],
    [
      hidesCatalog(searchPath),
      'SEARCH_PATH_HIDES_CATALOG',
      `search_path (${searchPath}) names pg_catalog after another schema, whose functions and operators can take the ` +
        "place of PostgreSQL's own. Leave pg_catalog out, which puts it first.",
    ],
  ];
  return warnings.filter(([applies]) => applies).map(([, code, message]) => ({ code, message }));
}

/** Left out of the path, `pg_catalog` comes first. */
function hidesCatalog(searchPath: string): boolean {
  const names = searchPath.split(',').map((name) => name.trim().replaceAll('"', ''));
  return names.indexOf('pg_catalog') > 0;
}
