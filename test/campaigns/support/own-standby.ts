import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

import { OwnServer } from './own-server.js';
import { makeClusterDir, makePlace, type ServerPlace, SUPERUSER, writeClusterFile } from './own-server-place.js';
import { pickLastingPort } from './own-server-processes.js';
import { nameAbsentStandbys } from './standby-setting.js';

export interface StandbyOptions {
  /** What the primary knows it by: letters and underscores. */
  readonly name: string;
  /** Whether the primary acknowledges nothing that this standby has not on disk. */
  readonly synchronous: boolean;
  /** The port by which it reaches the primary. Default: the primary's. */
  readonly through?: number;
}

const POLL_MS = 20;
const CATCH_UP_MS = 60_000;

/**
 * Makes a standby from a base backup of a running primary, under whatever load that has, and starts it. Resolves when it
 * streams and, if it is to be a synchronous one, when no commit is acknowledged without it.
 *
 * By the functions that PostgreSQL has for that, since the embedded release comes without `pg_basebackup`.
 */
export async function createStandby(primary: OwnServer, options: StandbyOptions): Promise<OwnServer> {
  const place = await makePlace(primary.release);
  const standby = new OwnServer(primary.release, place, await pickLastingPort(), {
    ...primary.settings,
    synchronous_standby_names: '',
    primary_conninfo: `host=127.0.0.1 port=${String(options.through ?? primary.port)} user=${SUPERUSER} application_name=${options.name}`,
    primary_slot_name: options.name,
  });
  try {
    // Keeps what the standby has not got yet, from the backup's beginning on.
    await primary.query('SELECT pg_create_physical_replication_slot($1, true)', [options.name]);
    await backUp(primary, place);
    if (options.synchronous) await nameAbsentStandbys(primary, `FIRST 1 (${options.name})`);
    await standby.start();
    await untilStreaming(primary, options);
    return standby;
  } catch (error) {
    await standby.close();
    throw error;
  }
}

/** Makes the standby a primary, on a timeline of its own, that waits for no other standby. */
export async function promote(standby: OwnServer): Promise<void> {
  await standby.query('SELECT pg_promote(wait => true)');
}

async function backUp(primary: OwnServer, to: ServerPlace): Promise<void> {
  const client = new pg.Client({ connectionString: primary.url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(`SELECT pg_backup_start('standby', fast => true)`);
    copyCluster(primary.place, to);
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    );
    writeClusterFile(to, 'backup_label', rows[0]?.labelfile ?? '');
    writeClusterFile(to, 'standby.signal', '');
  } finally {
    await client.end();
  }
}

/** What PostgreSQL's documentation says to leave out of a base backup. */
const NOT_COPIED = ['postmaster.pid', 'postmaster.opts', 'pg_replslot', 'pg_wal', 'pg_stat_tmp', 'pg_dynshmem'];
const EMPTY = ['pg_replslot', 'pg_wal', 'pg_wal/archive_status', 'pg_wal/summaries', 'pg_stat_tmp', 'pg_dynshmem'];

function copyCluster(from: ServerPlace, to: ServerPlace): void {
  makeClusterDir(to);
  const excluded = NOT_COPIED.map((name) => `--exclude=./${name}`);
  const pack = `tar -C "$1" --warning=no-file-changed --warning=no-file-removed ${excluded.join(' ')} -cf - .`;
  // tar says 1 where files changed or went meanwhile, which they may.
  execFileSync(
    'bash',
    ['-c', `{ ${pack} || [ $? -eq 1 ]; } | tar -C "$2" -xpf -`, 'copy', from.clusterDir, to.clusterDir],
    {
      stdio: 'pipe',
    },
  );
  for (const name of EMPTY) {
    const directory = join(to.clusterDir, name);
    rmSync(directory, { recursive: true, force: true });
    makeClusterDir({ ...to, clusterDir: directory });
  }
}

async function untilStreaming(primary: OwnServer, { name, synchronous }: StandbyOptions): Promise<void> {
  const deadline = performance.now() + CATCH_UP_MS;
  for (;;) {
    const [row] = await primary.query<{ sync_state: string; names: string }>(
      `SELECT sync_state, current_setting('synchronous_standby_names') AS names
         FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'`,
      [name],
    );
    if (row !== undefined && (!synchronous || row.sync_state === 'sync')) return;
    if (performance.now() > deadline) throw new Error(`The standby ${name} does not stream.`);
    await pause(POLL_MS);
  }
}
