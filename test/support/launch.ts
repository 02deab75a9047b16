import pg from 'pg';
import { Holdfast, type HoldfastOptions, type Logger } from '../../src/index.js';
import { currentCondition } from './conditions.js';
import { createTestDatabase, type TestDatabase } from './database.js';

/** Says nothing: what tests provoke need not be read. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** How long an executor looks dead whose heartbeat comes at once, in milliseconds. */
const KEPT_EXPIRED_MS = 1_000;

/** A database of its own with everything that a test file launched on it. */
export interface Bed {
  readonly database: TestDatabase;
  /** A connection besides Holdfast's, to look and to interfere. */
  readonly sql: pg.Client;
  launch(options: Partial<HoldfastOptions> & Pick<HoldfastOptions, 'workflows'>): Promise<Holdfast>;
  /** Makes an executor look dead to all others until its next heartbeat. */
  expireLease(executorId: string): Promise<void>;
  close(): Promise<void>;
}

export async function createBed(): Promise<Bed> {
  const database = await createTestDatabase();
  const sql = new pg.Client({ connectionString: database.url });
  sql.on('error', () => undefined);
  await sql.connect();
  const launched: Holdfast[] = [];
  const expiries: Promise<void>[] = [];
  const expire = async (executorId: string): Promise<void> => {
    await sql.query(
      `UPDATE holdfast.executor SET lease_until = clock_timestamp() - interval '1 s' WHERE executor_id = $1`,
      [executorId],
    );
  };
  /** With a lease that is renewed all the time, dead for a moment is not dead for others. */
  const keepExpired = async (executorId: string): Promise<void> => {
    const until = performance.now() + KEPT_EXPIRED_MS;
    while (performance.now() < until) {
      await expire(executorId);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return {
    database,
    sql,
    async launch(options) {
      const holdfast = await Holdfast.launch({
        database: database.url,
        pollInterval: 50,
        logger: silentLogger,
        shutdownTimeout: 0,
        ...options,
      });
      launched.push(holdfast);
      return holdfast;
    },
    async expireLease(executorId) {
      await expire(executorId);
      if (currentCondition()?.name === 'short-lease') expiries.push(keepExpired(executorId));
    },
    async close() {
      await Promise.all(expiries);
      await Promise.all(launched.map((holdfast) => holdfast.close()));
      await sql.end();
      await database.drop();
    },
  };
}

/** A promise with its handles outside. */
export interface Gate<Value = void> {
  readonly opened: Promise<Value>;
  open(value: Value): void;
}

export function gate<Value = void>(): Gate<Value> {
  let open!: (value: Value) => void;
  const opened = new Promise<Value>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Waits until the condition holds; fails with `what` when it does not in time. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited ${String(timeoutMs)} ms in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
