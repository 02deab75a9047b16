import pg from 'pg';
import { later } from '../crew.js';
import type { Arena, Fault } from '../fault.js';

const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';
/** How long the lock itself is waited for: everybody else waits behind who waits for a table. */
const LOCK_TIMEOUT_MS = 1_000;
const HELD_LEASES = { from: 1.5, to: 4 } as const;
const BETWEEN_LEASES = 1;

/**
 * Somebody else's session, with a lock that it holds for several leases. The server may vanish under it. Who asks for something while it is held asks
 * by that session: the campaign's own may be waiting for the lock.
 */
async function holdLock(
  arena: Arena,
  lock: string,
  whileHeld: (locked: number, session: pg.Client) => Promise<void>,
): Promise<void> {
  const [here] = await arena.sql<{ name: string }>('SELECT current_database() AS name');
  const client = new pg.Client({
    connectionString: arena.server.urlOf(here?.name ?? ''),
    application_name: 'chaos locks',
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(`BEGIN; SET LOCAL lock_timeout = ${String(LOCK_TIMEOUT_MS)}`);
    const { rowCount } = await client.query(lock);
    await whileHeld(rowCount ?? 0, client);
    await client.query('ROLLBACK');
  } catch (error) {
    // Refused, or the connection is gone: then there is no lock, and nothing landed.
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code !== undefined && code !== LOCK_NOT_AVAILABLE && code !== DEADLOCK && !code.startsWith('57')) throw error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function heldMs({ random, leaseMs }: Arena): number {
  return leaseMs * random.between(HELD_LEASES.from, HELD_LEASES.to);
}

const ROWS = 8;

export const lockedRows: Fault = {
  name: 'locked-rows',
  does: `somebody else locks the rows of up to ${String(ROWS)} running workflows for 1.5 to 4 leases`,
  landsWhen: 'such a row was locked, and owned by an executor',
  wants: {},
  async run(arena) {
    while (await arena.pause(arena.leaseMs * BETWEEN_LEASES * arena.random.between(0.2, 1))) {
      const lock = `SELECT FROM holdfast.workflow_status WHERE status = 'PENDING' ORDER BY random() LIMIT ${String(ROWS)} FOR UPDATE SKIP LOCKED`;
      await holdLock(arena, lock, async (locked) => {
        await later(heldMs(arena));
        for (let row = 0; row < locked; row++) arena.hit('a running workflow');
      });
    }
  },
};

/** Each stops something else: writes, results, ends, leases, messages. */
const TABLES = ['workflow_status', 'step_result', 'workflow_outcome', 'executor', 'message'] as const;

export const lockedTable: Fault = {
  name: 'locked-table',
  does: `somebody else locks a whole table (${TABLES.join(', ')}) for 1.5 to 4 leases`,
  landsWhen: 'sessions of executors waited for that lock',
  wants: {},
  async run(arena) {
    while (await arena.pause(arena.leaseMs * BETWEEN_LEASES * arena.random.between(0.2, 1))) {
      const table = arena.random.pick(TABLES) ?? 'workflow_status';
      await holdLock(arena, `LOCK TABLE holdfast.${table} IN ACCESS EXCLUSIVE MODE`, async (_, session) => {
        await later(heldMs(arena));
        const { rows } = await session.query<{ count: number }>(
          `SELECT count(*)::int AS count FROM pg_stat_activity
            WHERE application_name LIKE 'executor%' AND wait_event_type = 'Lock'`,
        );
        const [waiting] = rows;
        if (waiting !== undefined && waiting.count > 0) arena.hit(`${table}: ${String(waiting.count)} sessions`);
      });
    }
  },
};
