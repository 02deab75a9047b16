import { signalTo } from '../../support/own-server-processes.js';
import type { OwnServer } from '../../support/own-server.js';
import type { Arena, Fault } from '../fault.js';

/** Time that executors get between two blows to the server, in milliseconds: they have to find it, and do something. */
const BETWEEN_MS = { from: 700, to: 2_500 } as const;

const turns = new WeakMap<OwnServer, Promise<void>>();

/** One at a time does something to a server; faults may have their turns together. */
export async function alone(server: OwnServer, action: () => Promise<void>): Promise<void> {
  const turn = (turns.get(server) ?? Promise.resolve()).then(action);
  turns.set(
    server,
    turn.catch(() => undefined),
  );
  await turn;
}

/** Sessions of executors that wait for an answer, or have a transaction open. */
export async function countBusy({ sql }: Arena): Promise<number> {
  const [row] = await sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name LIKE 'executor%' AND state <> 'idle'`,
  );
  return row?.count ?? 0;
}

/** Does something to the server again and again. `blow` resolves when it takes connections again. */
async function strike(arena: Arena, blow: (server: OwnServer) => Promise<void>): Promise<void> {
  while (await arena.pause(arena.random.between(BETWEEN_MS.from, BETWEEN_MS.to))) {
    await alone(arena.server, async () => {
      const busy = await countBusy(arena);
      await blow(arena.server);
      if (busy > 0) arena.hit(`${String(busy)} sessions were busy`);
    });
  }
}

export const databaseRestart: Fault = {
  name: 'database-restart',
  does: 'the server is stopped, with the sessions ended (fast), and started again',
  landsWhen: 'sessions of executors waited for an answer, or had a transaction open',
  wants: {},
  run: (arena) => strike(arena, (server) => server.restart('fast')),
};

export const databaseImmediate: Fault = {
  name: 'database-immediate-stop',
  does: 'the server is stopped at once (immediate), and recovers',
  landsWhen: 'sessions of executors waited for an answer, or had a transaction open',
  wants: {},
  run: (arena) => strike(arena, (server) => server.restart('immediate')),
};

export const databaseCrash: Fault = {
  name: 'postmaster-killed',
  does: 'SIGKILL of the postmaster: its other processes finish what they are at, and go; then it is started again',
  landsWhen: 'sessions of executors waited for an answer, or had a transaction open',
  wants: {},
  run: (arena) =>
    strike(arena, async (server) => {
      await server.crash();
      await server.start();
    }),
};

export const backendKilled: Fault = {
  name: 'backend-killed',
  does: 'SIGKILL of a session’s process: the server ends all sessions, and recovers by itself',
  landsWhen: 'that session waited for an answer, or had a transaction open',
  wants: {},
  async run(arena) {
    while (await arena.pause(arena.random.between(BETWEEN_MS.from, BETWEEN_MS.to))) {
      await alone(arena.server, async () => {
        const [victim] = await arena.sql<{ pid: number; app: string }>(
          `SELECT pid, application_name AS app FROM pg_stat_activity
            WHERE application_name LIKE 'executor%' AND state <> 'idle' ORDER BY random() LIMIT 1`,
        );
        if (victim === undefined || !signalTo(victim.pid, 'SIGKILL')) return;
        arena.hit(`a session of ${victim.app}`);
        // Waits until the server is there again.
        await arena.sql('SELECT');
      });
    }
  },
};

/** How long nothing may be flushed without being asked for, and how long that goes on before the stop, in milliseconds. */
const UNFLUSHED_MS = 10_000;
const ASYNCHRONOUS_MS = { from: 1_000, to: 2_000 } as const;

/**
 * The control: no code is changed, only a setting, and under it PostgreSQL itself takes back what it acknowledged. `launch` refuses
 * it, so it is set when all executors run.
 */
export const asynchronousCommit: Fault = {
  name: 'asynchronous-commit',
  does: 'synchronous_commit is off, and the server is stopped at once: acknowledged writes are lost, which the judges have to find',
  landsWhen: 'the log that was on disk ended before the one that was written',
  wants: {},
  alone: true,
  losesData: true,
  async run(arena) {
    const { server, sql, random, hit } = arena;
    server.configure({
      synchronous_commit: 'off',
      wal_writer_delay: `${String(UNFLUSHED_MS)}ms`,
      wal_writer_flush_after: '1GB',
    });
    while (await arena.pause(random.between(ASYNCHRONOUS_MS.from, ASYNCHRONOUS_MS.to))) {
      const [behind] = await sql<{ bytes: number }>(
        'SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::float8 AS bytes',
      );
      await server.restart('immediate');
      if (behind !== undefined && behind.bytes > 0) hit(`${String(behind.bytes)} bytes of the log`);
    }
    server.configure({ synchronous_commit: 'on', wal_writer_delay: '200ms', wal_writer_flush_after: '1MB' });
  },
};
