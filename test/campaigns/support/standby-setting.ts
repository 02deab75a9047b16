import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { OwnServer } from './own-server.js';

const POLL_MS = 20;
const PATIENCE_MS = 30_000;
/** A commit that waits for no standby is back by then, or is asked again. */
const COMMIT_MS = 300;

/**
 * Names the synchronous standbys, of which none is connected, and resolves when that is in force: commits wait, or wait no more. A session
 * that shows the setting is no sign of that: it is the checkpointer that decides whether commits wait, and it hears of it last.
 */
export async function nameAbsentStandbys(server: OwnServer, names: string): Promise<void> {
  server.configure({ synchronous_standby_names: names });
  const deadline = performance.now() + PATIENCE_MS;
  while ((await commits(server)) !== (names === '')) {
    if (performance.now() > deadline) throw new Error(`The server does not go by "${names}" as its standbys.`);
    await pause(POLL_MS);
  }
}

/** Whether a commit comes back; one that waits is given up. */
async function commits(server: OwnServer): Promise<boolean> {
  const client = new pg.Client({ connectionString: server.url });
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const committed = client.query(`SELECT pg_logical_emit_message(true, 'test', '')`).then(
    () => true,
    () => false,
  );
  const isCommitted = await Promise.race([committed, pause(COMMIT_MS, false)]);
  if (isCommitted) await client.end();
  else await server.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
  return isCommitted;
}
