import { FUNCTIONS_ROW } from './migrate-plan.js';
import type { MigrationFile, SqlFiles } from './sql-files.js';

/** Milliseconds that one statement of a migration may take, and that a process waits for another one's migration. */
export const MIGRATION_TIMEOUT_MS = 600_000;
/**
 * Milliseconds that a migration waits for a lock on a table. Everybody else queues up behind it meanwhile, so it gives way
 * and tries again.
 */
const TABLE_LOCK_TIMEOUT_MS = 5_000;

/**
 * Without it the server finds out that a process was killed only when the statement ends, and others wait for the lock all
 * that time. Not every operating system can tell, and the server then refuses the setting.
 */
const NOTICE_DEAD_CLIENTS = `DO $$
BEGIN
  SET LOCAL client_connection_check_interval = '1s';
EXCEPTION WHEN invalid_parameter_value THEN
  NULL;
END
$$`;

/**
 * What is applied, in a table that never changes its shape, so that every release can read it.
 * Identifiers are quoted by hand, which the names that `assertSchemaName` lets pass allow.
 */
export function createBookkeeping(schema: string): string {
  return `CREATE TABLE "${schema}".migration (
  -- Row ${FUNCTIONS_ROW} stands for the functions; its checksum changes with them.
  version         integer NOT NULL,
  name            text NOT NULL,
  checksum        text NOT NULL,
  -- The oldest schema version whose library may still run.
  compatible_with integer NOT NULL,
  library_version text NOT NULL,
  applied_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (version)
)`;
}

/** `unlessThere` asks for the right to create a schema even where there is one. */
export function createSchema(schema: string, { unlessThere = false } = {}): string {
  return `CREATE SCHEMA ${unlessThere ? 'IF NOT EXISTS ' : ''}"${schema}"`;
}

export function selectApplied(schema: string): string {
  return `SELECT version, checksum, compatible_with, library_version FROM "${schema}".migration`;
}

/**
 * Runs first in each transaction. Settings of the role or the database must not change what the files mean, and one
 * process migrates a schema at a time. The lock is the transaction's: behind a pooler a session is not ours to lock with.
 */
export function beginMigration(schema: string): string {
  return `SET LOCAL search_path = "${schema}", pg_temp;
SET LOCAL standard_conforming_strings = on;
SET LOCAL check_function_bodies = off;
SET LOCAL client_min_messages = warning;
SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS};
SET LOCAL lock_timeout = 0;
${NOTICE_DEAD_CLIENTS};
SELECT pg_advisory_xact_lock(hashtextextended('holdfast.migrate.${schema}', 0));
SET LOCAL lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`;
}

/** Comes before the migration itself: of two that got past the lock somehow, the primary key lets one through. */
export function recordMigration(schema: string, migration: MigrationFile, libraryVersion: string): string {
  const { version, name, checksum, compatibleWith } = migration;
  return `INSERT INTO "${schema}".migration (version, name, checksum, compatible_with, library_version)
VALUES (${version}, ${literal(name)}, ${literal(checksum)}, ${compatibleWith}, ${literal(libraryVersion)})`;
}

export function recordFunctions(schema: string, { functions, libraryVersion }: SqlFiles): string {
  return `INSERT INTO "${schema}".migration (version, name, checksum, compatible_with, library_version)
VALUES (${FUNCTIONS_ROW}, 'functions', ${literal(functions.checksum)}, ${FUNCTIONS_ROW}, ${literal(libraryVersion)})
ON CONFLICT (version) DO UPDATE
  SET checksum = excluded.checksum, library_version = excluded.library_version, applied_at = excluded.applied_at`;
}

/** Valid whatever `standard_conforming_strings` is, for texts without a backslash; the files have none (tested). */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
