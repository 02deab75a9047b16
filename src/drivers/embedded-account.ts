import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';

import { EmbeddedPostgresError } from '../errors/embedded-errors.js';

/** The operating-system user that the server's processes run as. */
export interface ServerAccount {
  readonly uid: number;
  readonly gid: number;
}

/** Tried in this order. Nothing is created: a library has no business adding users to a machine. */
const ACCOUNT_NAMES = ['postgres', 'nobody'] as const;

/** Whether this process is root, which `initdb` and `postgres` refuse to be. Always false on Windows. */
function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * The account to switch to, or `undefined` to stay who we are.
 *
 * @param clusterDir an existing cluster keeps the account that it was made by: the server refuses a directory of another's.
 */
export function chooseServerAccount(clusterDir?: string): ServerAccount | undefined {
  if (!runsAsRoot()) return undefined;
  const owner = clusterDir === undefined ? undefined : statSync(clusterDir, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of ACCOUNT_NAMES) {
    const account = lookUpAccount(name);
    if (account !== undefined) return account;
  }
  throw new EmbeddedPostgresError(
    'PostgreSQL refuses to run as root, and this machine has neither a "postgres" nor a "nobody" user to run it as. ' +
      'Run the process as an ordinary user, or set DATABASE_URL to a running server.',
  );
}

function lookUpAccount(name: string): ServerAccount | undefined {
  try {
    const ask = (flag: string): number => Number(execFileSync('id', [flag, name], { stdio: 'pipe', encoding: 'utf8' }));
    return { uid: ask('-u'), gid: ask('-g') };
  } catch {
    return undefined;
  }
}

/** Whether `account` may walk to `directory`: the search permission of it and of all above it. Access lists are not looked at. */
export function canEnter(directory: string, account: ServerAccount): boolean {
  const { mode, uid, gid } = statSync(directory);
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(directory);
  return parent === directory || canEnter(parent, account);
}
