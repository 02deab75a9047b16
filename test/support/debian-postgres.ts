import { existsSync } from 'node:fs';

import { chooseServerAccount } from '../../src/drivers/embedded-account.js';
import { type RunningServer, startServer } from '../../src/drivers/server-process.js';

const BIN_DIR = '/usr/lib/postgresql/15/bin';

/** A temporary server from Debian's package `postgresql-15`: the oldest release that Holdfast supports. */
export async function startDebianPostgres(
  settings: Readonly<Record<string, string | number | boolean>>,
): Promise<RunningServer> {
  if (!existsSync(BIN_DIR)) {
    throw new Error(`HOLDFAST_TEST_POSTGRES=15 needs ${BIN_DIR}: install Debian's package postgresql-15.`);
  }
  return startServer({ binDir: BIN_DIR, account: chooseServerAccount(), settings });
}
