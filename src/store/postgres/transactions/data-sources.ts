import { randomInt } from 'node:crypto';
import type { DataSource, DataSourceAdapter } from '../../../api/data-source.js';
import type { Driver } from '../../../drivers/driver.js';
import { openDriver, type DriverTarget } from '../../../drivers/open-driver.js';
import { PoolEndedError } from '../../../errors/database-errors.js';
import { SchemaPermissionError, SchemaTooNewError } from '../../../errors/schema-errors.js';
import { DataSourceError } from '../../../errors/transaction-errors.js';
import { assertSchemaName } from '../migrate-schema-name.js';
import { isRefusal, isTransient } from '../transient-errors.js';
import { AdapterSource } from './adapter-source.js';
import {
  assertNotNewer,
  COMPLETION_VERSION,
  installCompletions,
  READ_COMPLETION_VERSION,
} from './completion-install.js';
import { Completions } from './completions.js';
import { DriverSource } from './driver-source.js';
import type { SourceTransaction, TransactionSource } from './source.js';
import { isPassing } from './sql-state.js';

/** How long a transaction of ours, in which no code of users runs, may be idle; milliseconds. */
const OWN_IDLE_TIMEOUT_MS = 10_000;

/** A data source that has been looked at. */
export interface OpenDataSource {
  readonly source: TransactionSource;
  /** Undefined: it is Holdfast's database, and may write to its schema, so that results are recorded in its transactions. */
  readonly completions: Completions | undefined;
  readonly close: () => Promise<void>;
}

export interface DataSourcesOptions {
  readonly driver: Driver;
  /** What the driver was opened on, where it is the caller's. */
  readonly database: unknown;
  readonly schema: string;
  /** Whether tables of completions may be created. */
  readonly migrate: boolean;
  /** Asks a data source again while what that fails with passes, and there is time. */
  readonly insist: <Answer>(
    name: string,
    ask: () => Promise<Answer>,
    passes: (error: unknown) => boolean,
  ) => Promise<Answer>;
}

/**
 * Opens each data source and finds out what it is. Waits for one that cannot be reached.
 * @throws DataSourceError when it cannot be used, and what ends the waiting.
 */
export async function openDataSources(
  dataSources: readonly DataSource[],
  options: DataSourcesOptions,
): Promise<ReadonlyMap<object, OpenDataSource>> {
  const opened = new Map<object, OpenDataSource>();
  try {
    for (const dataSource of dataSources) opened.set(dataSource, await open(dataSource, options));
    return opened;
  } catch (error) {
    await closeDataSources(opened);
    throw error;
  }
}

export async function closeDataSources(dataSources: ReadonlyMap<object, OpenDataSource>): Promise<void> {
  await Promise.all([...dataSources.values()].map(({ close }) => close()));
}

async function open(dataSource: DataSource, options: DataSourcesOptions): Promise<OpenDataSource> {
  const { name, target, completionSchema } = dataSource;
  assertSchemaName(completionSchema);
  const isShared = target === options.database;
  const own = isAdapter(target) || isShared ? undefined : await openDriver(target as DriverTarget);
  const source = isAdapter(target) ? new AdapterSource(target) : new DriverSource(own ?? options.driver, { isShared });
  const close = (): Promise<void> => own?.close() ?? Promise.resolve();
  const look = async (): Promise<Completions | undefined> => {
    if (isShared || (await isJoined(source, options))) return undefined;
    if (options.migrate && own !== undefined) await installCompletions(own, completionSchema);
    await assertInstalled(source, name, completionSchema);
    await assertMayCount(options);
    return new Completions(completionSchema);
  };
  try {
    return { source, completions: await options.insist(name, () => explain(name, look), mayPass), close };
  } catch (error) {
    await close();
    throw error;
  }
}

const IS_EXPLAINED = [DataSourceError, SchemaTooNewError, SchemaPermissionError];

/** Says of which data source it is what it fails with, unless that passes. */
async function explain<Answer>(name: string, look: () => Promise<Answer>): Promise<Answer> {
  try {
    return await look();
  } catch (error) {
    if (mayPass(error) || IS_EXPLAINED.some((kind) => error instanceof kind)) throw error;
    throw new DataSourceError(`Data source "${name}" cannot be used: ${reasonOf(error)}`, { cause: error });
  }
}

function mayPass(error: unknown): boolean {
  return (isTransient(error) || isPassing(error)) && !isRefusal(error) && !(error instanceof PoolEndedError);
}

function isAdapter(target: object): target is DataSourceAdapter<unknown> {
  return 'transaction' in target && 'query' in target && !('totalCount' in target) && typeof target !== 'function';
}

/** One short transaction of ours. */
export function ask<Result>(
  source: TransactionSource,
  work: (open: SourceTransaction) => Promise<Result>,
): Promise<Result> {
  return source.run({ isolation: 'read committed', readOnly: false, idleTimeoutMs: OWN_IDLE_TIMEOUT_MS }, work);
}

/**
 * Whether the data source is the very database that Holdfast lives in, now, and may record results there. Names and identifiers
 * can be alike in a copy, a restored backup or a replica. A lock cannot: what one connection holds, the other one meets only in the
 * same database of the same running server.
 */
async function isJoined(source: TransactionSource, { driver, schema }: DataSourcesOptions): Promise<boolean> {
  const key = String(randomInt(2 ** 47));
  const isSame = await driver.transaction(async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock($1::text::int8)', [key]);
    return ask(
      source,
      async (open) =>
        (await open.reply('SELECT pg_try_advisory_xact_lock($1::text::int8)::text AS reply', key)) === 'false',
    );
  });
  return isSame && ask(source, (open) => mayRecord(open, schema));
}

/** Whether its role has the rights that checkpoint_transaction needs. */
async function mayRecord(open: SourceTransaction, schema: string): Promise<boolean> {
  const reply = await open.reply(
    `SELECT (has_schema_privilege(n.oid, 'USAGE')
  AND has_table_privilege(s.oid, 'SELECT') AND has_table_privilege(s.oid, 'UPDATE')
  AND has_table_privilege(r.oid, 'SELECT') AND has_table_privilege(r.oid, 'INSERT'))::text AS reply
FROM (SELECT $1::text AS name) p
JOIN pg_namespace n ON n.nspname = p.name
JOIN pg_class s ON s.relnamespace = n.oid AND s.relname = 'workflow_status'
JOIN pg_class r ON r.relnamespace = n.oid AND r.relname = 'step_result'`,
    schema,
  );
  return reply === 'true';
}

async function assertInstalled(source: TransactionSource, name: string, schema: string): Promise<void> {
  const version = await ask(source, async (open) => Number(await open.reply(READ_COMPLETION_VERSION, schema)));
  assertNotNewer(version, schema);
  if (version === COMPLETION_VERSION) return;
  throw new DataSourceError(
    `Data source "${name}" is not Holdfast's own database, or its role may not write there, so that it needs the table of ` +
      `completions in schema "${schema}", which is not there, or an older one, or kept from that role: run what renderCompletionSql("${schema}") ` +
      'returns; a role that does not own the schema needs USAGE on it, and SELECT, INSERT and UPDATE on its tables.',
  );
}

/**
 * Which life of a workflow a completion belongs to is counted in Holdfast's database, by a sequence, to which rights on tables do not
 * extend. Without that right each execution would end at its first such transaction.
 */
async function assertMayCount({ driver, schema }: DataSourcesOptions): Promise<void> {
  const [row] = await driver.query<{ mayCount: boolean; grant: string }>(
    `SELECT has_sequence_privilege(s.oid, 'USAGE, UPDATE') AS "mayCount",
  format('GRANT USAGE ON SEQUENCE %I.%I TO %I', n.nspname, s.relname, current_user) AS grant
FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace
WHERE n.nspname = $1::text AND s.relname = 'transaction_generation_number'`,
    [schema],
  );
  if (row === undefined || row.mayCount) return;
  throw new SchemaPermissionError(
    `Transactions in another database need a right on a sequence of the schema "${schema}". Let an administrator run: ${row.grant};`,
    [row.grant],
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
