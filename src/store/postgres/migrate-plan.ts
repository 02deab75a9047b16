import { SchemaChecksumMismatchError, SchemaTooNewError, type SchemaVersions } from '../../errors/schema-errors.js';
import { compareLibraryVersions } from './migrate-library-version.js';
import type { MigrationFile, SqlFiles } from './sql-files.js';

/** The version under which the table of migrations records the functions. */
export const FUNCTIONS_ROW = 0;

/** A row of the table of migrations. The row {@link FUNCTIONS_ROW} stands for the functions, and is replaced with them. */
export interface AppliedRow {
  readonly version: number;
  readonly checksum: string;
  readonly compatibleWith: number;
  readonly libraryVersion: string;
}

/** What this library would have to do to the database. */
export interface MigrationPlan {
  /** Number of the last applied migration; 0 for none. */
  readonly databaseVersion: number;
  /** What is to be applied, in order. */
  readonly missing: readonly MigrationFile[];
  /** `newer`: a newer library's functions are there; they serve this one too and stay. */
  readonly functions: 'current' | 'to-replace' | 'newer';
}

/**
 * Compares what the database has with what the library brings.
 * @throws SchemaChecksumMismatchError, SchemaTooNewError
 */
export function planMigration(files: SqlFiles, rows: readonly AppliedRow[]): MigrationPlan {
  const applied = new Map(rows.filter(({ version }) => version !== FUNCTIONS_ROW).map((row) => [row.version, row]));
  const databaseVersion = Math.max(0, ...applied.keys());
  const versions: SchemaVersions = { databaseVersion, libraryVersion: files.migrations.length };
  assertUnchanged(files, applied, databaseVersion);
  assertCompatible(files, applied, versions);
  return {
    databaseVersion,
    missing: files.migrations.filter(({ version }) => version > databaseVersion),
    functions: judgeFunctions(
      files,
      rows.find(({ version }) => version === FUNCTIONS_ROW),
      versions,
    ),
  };
}

/** Whether the plan leaves nothing to do. */
export function isUpToDate(plan: MigrationPlan): boolean {
  return plan.missing.length === 0 && plan.functions !== 'to-replace';
}

function assertUnchanged(files: SqlFiles, applied: ReadonlyMap<number, AppliedRow>, databaseVersion: number): void {
  for (const { version, name, checksum } of files.migrations) {
    if (version > databaseVersion) return;
    const row = applied.get(version);
    if (row === undefined) {
      throw new SchemaChecksumMismatchError(
        `The schema records migration ${databaseVersion} but not migration ${version} (${name}): its table "migration" ` +
          'was changed by hand. Restore the row, or start with an empty schema.',
      );
    }
    if (row.checksum !== checksum) {
      throw new SchemaChecksumMismatchError(
        `Migration ${version} (${name}) was applied by version ${row.libraryVersion} of the library with another text ` +
          `(checksum ${row.checksum.slice(0, 12)}) than this one has (${checksum.slice(0, 12)}). Migrations never ` +
          'change once released: install the unmodified package, or start with an empty schema.',
      );
    }
  }
}

/** An older library goes on working during a rolling deploy as long as every newer migration says that it may. */
function assertCompatible(files: SqlFiles, applied: ReadonlyMap<number, AppliedRow>, versions: SchemaVersions): void {
  for (const { version, compatibleWith, libraryVersion } of applied.values()) {
    if (version <= versions.libraryVersion || compatibleWith <= versions.libraryVersion) continue;
    throw new SchemaTooNewError(
      `Version ${libraryVersion} of the library migrated the schema to version ${version}, which libraries below schema ` +
        `version ${compatibleWith} cannot work with; this one (${files.libraryVersion}) has version ` +
        `${versions.libraryVersion}. Upgrade the holdfast package to ${libraryVersion} or later.`,
      versions,
    );
  }
}

/**
 * The functions of a release serve all older ones that may run (docs/protocol.md), so the newest ones ever installed
 * stay. Two builds with the same version and different functions occur in development only: there the last one wins,
 * unless the schema shows that the other one is ahead.
 */
function judgeFunctions(
  { functions, libraryVersion }: SqlFiles,
  row: AppliedRow | undefined,
  versions: SchemaVersions,
): MigrationPlan['functions'] {
  if (row === undefined) return 'to-replace';
  if (row.checksum === functions.checksum) return 'current';
  const order = compareLibraryVersions(libraryVersion, row.libraryVersion);
  if (order === 0) return versions.databaseVersion > versions.libraryVersion ? 'newer' : 'to-replace';
  return order > 0 ? 'to-replace' : 'newer';
}
