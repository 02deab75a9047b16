import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { SchemaFilesError } from '../../errors/schema-errors.js';

/** One numbered, immutable step of the schema. */
export interface MigrationFile {
  /** From 1, without gaps. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /**
   * The oldest schema version whose library still works after this migration, from its header `-- compatible-with: N`.
   * Without one it is the migration's own version: no older library may start any more.
   */
  readonly compatibleWith: number;
}

/** The protocol: replaced whole. */
export interface FunctionFiles {
  readonly sql: string;
  readonly checksum: string;
}

/** All SQL that one release of the library brings. */
export interface SqlFiles {
  /** In order of their versions. */
  readonly migrations: readonly MigrationFile[];
  readonly functions: FunctionFiles;
  /** Version of the npm package. Of two releases with different functions, the higher one's are the newer ones. */
  readonly libraryVersion: string;
}

const MIGRATION_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;
const COMPATIBLE_WITH = /^-- compatible-with: (\d+)$/;

/** Reads the SQL files of the installed package. */
export async function loadSqlFiles(packageDir: string = findPackageDir()): Promise<SqlFiles> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8'));
    const [migrations, functions] = await Promise.all([
      readFolder(join(packageDir, 'sql', 'migrations')),
      readFolder(join(packageDir, 'sql', 'functions')),
    ]);
    return {
      migrations: parseMigrations(migrations),
      functions: joinFunctions(functions),
      libraryVersion: (manifest as { version: string }).version,
    };
  } catch (cause) {
    if (cause instanceof SchemaFilesError) throw cause;
    throw new SchemaFilesError(`Holdfast's SQL files in ${packageDir} cannot be read. Install the package anew.`, {
      cause,
    });
  }
}

/** What an application's own database gets for its completions; see sql/completion. */
export async function loadCompletionSql(packageDir: string = findPackageDir()): Promise<string> {
  const path = join(packageDir, 'sql', 'completion', 'completion.sql');
  try {
    return (await readFile(path, 'utf8')).replaceAll('\r\n', '\n');
  } catch (cause) {
    throw new SchemaFilesError(`Holdfast's file ${path} cannot be read. Install the package anew.`, { cause });
  }
}

/** A file as it lies in a folder. */
export interface SqlFile {
  readonly fileName: string;
  readonly sql: string;
}

/** Checks names and numbers of migrations, and reads their headers. */
export function parseMigrations(files: readonly SqlFile[]): MigrationFile[] {
  return files.map(({ fileName, sql }, index) => {
    const version = index + 1;
    const [, number, name] = MIGRATION_NAME.exec(fileName) ?? [];
    if (name === undefined || Number(number) !== version) {
      throw new SchemaFilesError(
        `Migration ${fileName} is out of line: expected ${String(version).padStart(4, '0')}_name.sql. ` +
          'Migrations are numbered from 0001 without gaps.',
      );
    }
    return { version, name, sql, checksum: checksumOf(sql), compatibleWith: readCompatibility(fileName, sql, version) };
  });
}

/** Joins functions to one text; their order does not matter, as bodies are not checked when functions are created. */
export function joinFunctions(files: readonly SqlFile[]): FunctionFiles {
  if (files.length === 0) throw new SchemaFilesError('There is no SQL function. Install the package anew.');
  return {
    sql: files.map(({ sql }) => sql).join('\n'),
    checksum: checksumOf(files.map(({ fileName, sql }) => `${fileName}\n${sql}`).join('\0')),
  };
}

/** The header is the comment before the first statement. */
function readCompatibility(fileName: string, sql: string, version: number): number {
  for (const line of sql.split('\n')) {
    if (line.trim() !== '' && !line.startsWith('--')) break;
    const [, declared] = COMPATIBLE_WITH.exec(line.trimEnd()) ?? [];
    if (declared === undefined) continue;
    const compatibleWith = Number(declared);
    if (compatibleWith >= 1 && compatibleWith <= version) return compatibleWith;
    throw new SchemaFilesError(`Migration ${fileName} says compatible-with ${declared}: must be 1 to ${version}.`);
  }
  return version;
}

async function readFolder(folder: string): Promise<SqlFile[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (fileName) => ({
      fileName,
      // A checkout on Windows may have other line ends, which must not make another checksum.
      sql: (await readFile(join(folder, fileName), 'utf8')).replaceAll('\r\n', '\n'),
    })),
  );
}

function checksumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** `src/store/postgres` and `dist/store/postgres` lie equally deep. A bundle lies anywhere, and then asks for the package. */
function findPackageDir(): string {
  const beside = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
  if (existsSync(join(beside, 'sql', 'migrations'))) return beside;
  try {
    return dirname(createRequire(import.meta.url).resolve('holdfast/package.json'));
  } catch (cause) {
    throw new SchemaFilesError(
      "Holdfast's SQL files were not found. In a bundle, mark the package 'holdfast' as external and install it beside it.",
      { cause },
    );
  }
}
