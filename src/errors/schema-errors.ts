import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** The name of the schema is none that Holdfast accepts: `^[a-z_][a-z0-9_]{0,47}$`, and not one of PostgreSQL's own. */
export class InvalidSchemaNameError extends HoldfastError {
  override readonly code = 'SCHEMA_NAME_INVALID';
  override readonly name = 'InvalidSchemaNameError';
}

/** The package's own SQL files are missing or damaged: an incomplete installation, or a bundle without its `sql` folder. */
export class SchemaFilesError extends HoldfastError {
  override readonly code = 'SCHEMA_FILES_INVALID';
  override readonly name = 'SchemaFilesError';
}

/** Which version the database's schema has, and which one the library brings. */
export interface SchemaVersions {
  /** Number of the last applied migration; 0 for none. */
  readonly databaseVersion: number;
  /** Number of the library's last migration. */
  readonly libraryVersion: number;
}

/** The schema lacks something that this library needs, and the library was told not to migrate. */
export class SchemaTooOldError extends HoldfastError {
  override readonly code = 'SCHEMA_TOO_OLD';
  override readonly name = 'SchemaTooOldError';
  readonly versions: SchemaVersions;

  constructor(message: string, versions: SchemaVersions, options?: HoldfastErrorOptions) {
    super(message, options);
    this.versions = versions;
  }
}

/** A newer library has changed the schema in a way that this one cannot work with. */
export class SchemaTooNewError extends HoldfastError {
  override readonly code = 'SCHEMA_TOO_NEW';
  override readonly name = 'SchemaTooNewError';
  readonly versions: SchemaVersions;

  constructor(message: string, versions: SchemaVersions, options?: HoldfastErrorOptions) {
    super(message, options);
    this.versions = versions;
  }
}

/** What was applied to the database is not what this library would have applied under the same number. */
export class SchemaChecksumMismatchError extends HoldfastError {
  override readonly code = 'SCHEMA_CHECKSUM_MISMATCH';
  override readonly name = 'SchemaChecksumMismatchError';
}

/** The database role lacks a right. */
export class SchemaPermissionError extends HoldfastError {
  override readonly code = 'SCHEMA_PERMISSION_DENIED';
  override readonly name = 'SchemaPermissionError';
  /** Statements, each of which gives one missing right; to be run by an administrator. Empty when unknown which it is. */
  readonly grants: readonly string[];

  constructor(message: string, grants: readonly string[], options?: HoldfastErrorOptions) {
    super(message, options);
    this.grants = grants;
  }
}

/** The server is a standby, which takes no writes. */
export class DatabaseIsReplicaError extends HoldfastError {
  override readonly code = 'DATABASE_IS_REPLICA';
  override readonly name = 'DatabaseIsReplicaError';
}

/** The server is no standby, but refuses writes all the same. */
export class DatabaseReadOnlyError extends HoldfastError {
  override readonly code = 'DATABASE_READ_ONLY';
  override readonly name = 'DatabaseReadOnlyError';
}

/** The server's release is older than the oldest one that Holdfast supports. */
export class DatabaseTooOldError extends HoldfastError {
  override readonly code = 'DATABASE_TOO_OLD';
  override readonly name = 'DatabaseTooOldError';
}

/** The database's encoding cannot hold every text. */
export class DatabaseEncodingError extends HoldfastError {
  override readonly code = 'DATABASE_ENCODING_UNSUPPORTED';
  override readonly name = 'DatabaseEncodingError';
}

/** A commit is acknowledged before it is durable, so a crash of the server would take acknowledged results back. */
export class SynchronousCommitOffError extends HoldfastError {
  override readonly code = 'SYNCHRONOUS_COMMIT_OFF';
  override readonly name = 'SynchronousCommitOffError';
}
