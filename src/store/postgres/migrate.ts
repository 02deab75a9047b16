import { setTimeout as pause } from 'node:timers/promises';

import type { Driver, DriverTransaction, SqlExecutor } from '../../drivers/driver.js';
import { ConnectionLostError, DatabaseError } from '../../errors/database-errors.js';
import { SchemaTooOldError } from '../../errors/schema-errors.js';
import { explainPermission, isPermissionFailure, type Attempt } from './migrate-permission.js';
import { type AppliedRow, isUpToDate, type MigrationPlan, planMigration } from './migrate-plan.js';
import { assertSchemaName } from './migrate-schema-name.js';
import {
  beginMigration,
  createBookkeeping,
  createSchema,
  MIGRATION_TIMEOUT_MS,
  recordFunctions,
  recordMigration,
  selectApplied,
} from './migrate-statements.js';
import { loadSqlFiles, type SqlFiles } from './sql-files.js';

/** Milliseconds that the server gets to end a statement itself before the connection is given up. */
const REPLY_GRACE_MS = 5_000;
/** Milliseconds between two statements after which the server ends the session of a process that froze while migrating. */
const IDLE_TIMEOUT_MS = 60_000;
/** Times that a step is tried when something passing stands in its way. */
const MAX_TRIES = 10;
const FIRST_RETRY_DELAY_MS = 100;
const MAX_RETRY_DELAY_MS = 5_000;

/** Lock timeout, deadlock, serialisation failure: the transaction left nothing behind and may succeed when repeated. */
const PASSING_FAILURES: readonly string[] = ['55P03', '40P01', '40001'];
/** Undefined table, undefined schema. */
const NOTHING_THERE: readonly string[] = ['42P01', '3F000'];

/** What {@link migrateSchema} is to do. */
export interface MigrateOptions {
  /** Schema that holds Holdfast's tables; created when missing. */
  readonly schema: string;
  /** `false` only checks, and throws when something would have to be applied. Default `true`. */
  readonly migrate?: boolean;
  /** Default: those of the installed package. */
  readonly files?: SqlFiles;
}

/** What {@link migrateSchema} found and did. */
export interface MigrationReport {
  /** Number of the last applied migration. Higher than {@link libraryVersion} when a newer, compatible library migrated. */
  readonly databaseVersion: number;
  /** Number of this library's last migration. */
  readonly libraryVersion: number;
  /** Numbers of the migrations that this call applied. */
  readonly applied: readonly number[];
  /** `replaced` by this call, `current` already, or `newer`: a newer library's, which serve this one too. */
  readonly functions: 'replaced' | 'current' | 'newer';
}

/**
 * Brings the schema up to date: one transaction for each missing migration, and one for all functions. Any number of
 * processes may do this at once, and any of them may die at any point: what is committed is whole, and the next one goes on.
 * When nothing is missing this is one SELECT, without a lock.
 *
 * @throws InvalidSchemaNameError for a name that cannot be used.
 * @throws SchemaTooNewError when a newer library changed the schema in a way that this one cannot work with.
 * @throws SchemaTooOldError when something is missing and `migrate` is `false`.
 * @throws SchemaChecksumMismatchError when an applied migration is not the one that this library has.
 * @throws SchemaPermissionError when the role lacks a right; it says which GRANT is needed.
 */
export async function migrateSchema(driver: Driver, options: MigrateOptions): Promise<MigrationReport> {
  const { schema, migrate = true } = options;
  const { files, plan } = await look(driver, options);
  if (isUpToDate(plan)) return reportOf(files, plan, [], false);
  if (!migrate) throw tooOld(schema, files, plan);
  return withRights(driver, schema, 'migrate', () => migrateAll(driver, schema, files));
}

/**
 * Whether {@link migrateSchema} has nothing to do: one SELECT, without a lock.
 * @throws what `migrateSchema` throws before it changes anything, but for SchemaTooOldError.
 */
export async function isSchemaCurrent(driver: Driver, options: MigrateOptions): Promise<boolean> {
  return isUpToDate((await look(driver, options)).plan);
}

async function look(
  driver: Driver,
  { schema, migrate = true, files: given }: MigrateOptions,
): Promise<{ readonly files: SqlFiles; readonly plan: MigrationPlan }> {
  assertSchemaName(schema);
  const files = given ?? (await loadSqlFiles());
  const attempt = migrate ? 'read-first' : 'read';
  return {
    files,
    plan: planMigration(files, await withRights(driver, schema, attempt, () => readApplied(driver, schema))),
  };
}

async function migrateAll(driver: Driver, schema: string, files: SqlFiles): Promise<MigrationReport> {
  const applied: number[] = [];
  let isReplaced = false;
  for (;;) {
    const step = await repeat(() => runStep(driver, schema, files));
    if (step.applied !== undefined) applied.push(step.applied);
    isReplaced ||= step.isReplaced;
    if (step.isLast) return reportOf(files, step.plan, applied, isReplaced);
  }
}

/** What one transaction did. */
interface StepReport {
  /** As found under the lock, before the step. */
  readonly plan: MigrationPlan;
  readonly applied: number | undefined;
  readonly isReplaced: boolean;
  readonly isLast: boolean;
}

/**
 * Takes the lock, looks again, and does the first thing that is missing. A commit whose reply was lost needs no care: the
 * next look shows what became of it, and only the report then lacks that step.
 */
function runStep(driver: Driver, schema: string, files: SqlFiles): Promise<StepReport> {
  return driver.transaction(
    async (transaction) => {
      await run(transaction, beginMigration(schema));
      const plan = planMigration(files, await readOrCreateBookkeeping(transaction, schema));
      const [migration] = plan.missing;
      if (migration !== undefined) {
        await run(transaction, recordMigration(schema, migration, files.libraryVersion));
        await run(transaction, migration.sql);
        return { plan, applied: migration.version, isReplaced: false, isLast: false };
      }
      const isReplaced = plan.functions === 'to-replace';
      if (isReplaced) {
        await run(transaction, recordFunctions(schema, files));
        await run(transaction, files.functions.sql);
      }
      return { plan, applied: undefined, isReplaced, isLast: true };
    },
    { idleTimeoutMs: IDLE_TIMEOUT_MS },
  );
}

async function run(transaction: DriverTransaction, text: string): Promise<void> {
  await transaction.query(text, [], { timeoutMs: MIGRATION_TIMEOUT_MS + REPLY_GRACE_MS });
}

async function readOrCreateBookkeeping(transaction: DriverTransaction, schema: string): Promise<AppliedRow[]> {
  const [found] = await transaction.query<{ has_schema: boolean; has_table: boolean }>(
    `SELECT to_regnamespace('"${schema}"') IS NOT NULL AS has_schema, to_regclass('"${schema}".migration') IS NOT NULL AS has_table`,
  );
  if (found?.has_table === true) return selectRows(transaction, schema);
  // CREATE SCHEMA IF NOT EXISTS would ask for the right to create one even where there is one.
  if (found?.has_schema !== true) await run(transaction, createSchema(schema));
  await run(transaction, createBookkeeping(schema));
  return [];
}

async function readApplied(driver: Driver, schema: string): Promise<AppliedRow[]> {
  try {
    return await selectRows(driver, schema);
  } catch (error) {
    if (error instanceof DatabaseError && NOTHING_THERE.includes(error.sqlState)) return [];
    throw error;
  }
}

async function selectRows(executor: SqlExecutor, schema: string): Promise<AppliedRow[]> {
  const rows = await executor.query<{
    version: number;
    checksum: string;
    compatible_with: number;
    library_version: string;
  }>(selectApplied(schema));
  return rows.map((row) => ({
    version: row.version,
    checksum: row.checksum,
    compatibleWith: row.compatible_with,
    libraryVersion: row.library_version,
  }));
}

async function withRights<Result>(
  driver: Driver,
  schema: string,
  attempt: Attempt,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isPermissionFailure(error)) throw error;
    throw await explainPermission(driver, schema, attempt, error);
  }
}

/** Repeats a step for as long as what it fails with passes. */
async function repeat<Result>(step: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await step();
    } catch (error) {
      const passes =
        error instanceof ConnectionLostError ||
        (error instanceof DatabaseError && PASSING_FAILURES.includes(error.sqlState));
      if (!passes || tries === MAX_TRIES) throw error;
      await pause(Math.min(FIRST_RETRY_DELAY_MS * 2 ** (tries - 1), MAX_RETRY_DELAY_MS));
    }
  }
}

function tooOld(schema: string, files: SqlFiles, plan: MigrationPlan): SchemaTooOldError {
  const libraryVersion = files.migrations.length;
  const what =
    plan.missing.length === 0
      ? `The functions in schema "${schema}" are not those of version ${files.libraryVersion} of the library`
      : plan.databaseVersion === 0
        ? `There is no Holdfast in schema "${schema}" of this database`
        : `Schema "${schema}" has version ${plan.databaseVersion}, and the library needs ${libraryVersion}`;
  const from = plan.databaseVersion === 0 ? '' : `, { fromVersion: ${plan.databaseVersion} }`;
  return new SchemaTooOldError(
    `${what}, and nothing is migrated here. Have Holdfast.launch do it, with a role that owns the schema, or run what renderMigrationSql('${schema}'${from}) returns.`,
    { databaseVersion: plan.databaseVersion, libraryVersion },
  );
}

function reportOf(files: SqlFiles, plan: MigrationPlan, applied: number[], isReplaced: boolean): MigrationReport {
  return {
    databaseVersion: plan.databaseVersion,
    libraryVersion: files.migrations.length,
    applied,
    functions: isReplaced ? 'replaced' : plan.functions === 'newer' ? 'newer' : 'current',
  };
}
