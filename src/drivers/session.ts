import { ConnectionLostError, DatabaseError } from '../errors/database-errors.js';
import type { SqlParameter, SqlRow } from './driver.js';
import { isServerError } from './failures.js';

/** What the server was found to be like when a session was opened. */
export interface SessionTraits {
  /** Whether a pooler sits between: the session is then not ours alone, and may be another one after each transaction. */
  readonly isPooled: boolean;
  /** Whether statements outside a transaction would run with other modes than read committed, read write. */
  readonly hasHostileDefaults: boolean;
}

/** Of a session that has not been asked yet. */
export const UNKNOWN_TRAITS: SessionTraits = { isPooled: false, hasHostileDefaults: false };

/** One connection, checked out. What a client library must be able to do; everything else is the driver's. */
export interface Session {
  readonly traits: SessionTraits;
  /** Why the session was destroyed, if it was. */
  readonly destroyedBy: Error | undefined;
  /** Runs one statement; rejects with the library's own error. A statement with a name is prepared under it. */
  run(text: string, parameters: readonly SqlParameter[], statementName: string | undefined): Promise<SqlRow[]>;
  /**
   * Runs `body` between BEGIN and COMMIT, and rolls back what it throws. `watch` is called around what the session does
   * itself (begin and end), with a function that stops watching.
   * @throws TransactionNotBegun, whatever `body` threw, when BEGIN was refused after `body` had been called.
   */
  transaction<Result>(
    begin: TransactionStart,
    body: (client: unknown, runner: TransactionRunner) => Promise<Result>,
    watch: () => () => void,
  ): Promise<Result>;
  /** Cuts the connection, whatever it is doing. What is in flight rejects. Idempotent. */
  destroy(cause: Error): void;
  /** Hands the connection back for reuse, unless it was destroyed or broke. Called once. */
  release(): void;
}

/** How a transaction is to begin. */
export interface TransactionStart {
  /** What follows BEGIN, in upper case: letters and spaces only. */
  readonly modes: string;
  /** Statements to run first inside it. */
  readonly settings: readonly string[];
}

/** What runs the statements of a transaction. */
export interface TransactionRunner extends Pick<Session, 'run'> {
  /**
   * Runs a prepared statement, whose rows are not read, and commits, both in one round trip; if the statement fails, there is no
   * COMMIT. Undefined where the session is the caller's or a pooler's. The body must return then.
   */
  readonly commitWith?: (text: string, parameters: readonly SqlParameter[], statementName: string) => Promise<void>;
}

/** BEGIN was refused, for this cause: the session is destroyed, and nothing of the transaction took effect. */
export class TransactionNotBegun extends Error {
  override readonly name = 'TransactionNotBegun';

  constructor(cause: unknown) {
    super('BEGIN was refused.', { cause });
  }
}

/** Where sessions come from. */
export interface SessionSource {
  /** Most sessions that it hands out at once. */
  readonly max: number;
  /** A session that is free right now: spares the hot path a promise. */
  acquireIdle(): Session | undefined;
  /**
   * @param isUrgent see `StatementOptions`
   * @throws ConnectionUnavailableError after `timeoutMs`, or when the server cannot be reached.
   */
  acquire(timeoutMs: number, isUrgent: boolean): Promise<Session>;
  /**
   * A statement that was sent at `since` (by `performance.now()`) got no answer in time. A way that carries nothing any more, without
   * a reset, swallows one statement after the other, each for its whole time limit: free sessions that have answered nothing since then
   * are not handed out again. A pool that is not ours has no say in that.
   */
  distrust?(since: number): void;
  close(): Promise<void>;
}

/**
 * Asks a new session what it is. The names are qualified since `search_path` may put other schemas before `pg_catalog`.
 *
 * Where commits wait for synchronous standbys, the session does, too, before it is used. A primary that restarted shows
 * transactions that were on its disk and not yet with a standby: they were never acknowledged, are not there after a failover, and
 * must not be taken for answers meanwhile. The message is a record in the log that nobody reads; it makes the transaction one
 * that has to be replicated, and with it everything before. On a primary that was replaced no session gets beyond this.
 *
 * A pooler gives its clients a cancellation key of its own making, so the process ID that came with the key is not the
 * server's: the only sign of a pooler that needs neither its cooperation nor its console.
 */
export const PROBE_SESSION = `SELECT pg_catalog.pg_backend_pid() AS pid,
  pg_catalog.current_setting('default_transaction_isolation') AS isolation,
  pg_catalog.current_setting('default_transaction_read_only') AS read_only,
  CASE WHEN pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.<>) ''
        AND NOT pg_catalog.pg_is_in_recovery()
       THEN pg_catalog.pg_logical_emit_message(true, 'holdfast', '')::text END AS replicated,
  pg_catalog.current_setting('client_connection_check_interval') AS connection_check`;

/** Makes read committed, read write the default of a session that is ours alone. */
const SET_SESSION_MODES = 'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE';

/**
 * Has the server look, while a statement runs or waits for a lock, whether its client is still there. Without it a statement that was
 * given up here goes on there: behind a table that somebody has locked, each of them keeps a server process, until there are no
 * connections left for anybody.
 */
const SET_CONNECTION_CHECK = "SET client_connection_check_interval = '10s'";
/** How a server refuses that whose operating system cannot tell (Windows). */
const INVALID_PARAMETER_VALUE = '22023';

/**
 * Sets up a new session where it is ours alone, by `run`, and says what it is like then.
 * @param row of the answer to {@link PROBE_SESSION}
 * @param keyPid the process ID that came with the cancellation key
 */
export async function setUpOwn(
  row: SqlRow | undefined,
  keyPid: number | null,
  run: (text: string) => Promise<unknown>,
): Promise<SessionTraits> {
  const traits = readTraits(row, keyPid);
  if (traits.isPooled) return traits;
  if (traits.hasHostileDefaults) await run(SET_SESSION_MODES);
  // Another value is somebody's choice.
  if (row?.['connection_check'] === '0') {
    await run(SET_CONNECTION_CHECK).catch((error: unknown) => {
      if (!isServerError(error) || error.code !== INVALID_PARAMETER_VALUE) throw error;
    });
  }
  return { ...traits, hasHostileDefaults: false };
}

/** Reads the answer to {@link PROBE_SESSION}; `keyPid` is the process ID that came with the cancellation key. */
export function readTraits(row: SqlRow | undefined, keyPid: number | null): SessionTraits {
  return {
    isPooled: row?.['pid'] !== keyPid,
    hasHostileDefaults: row?.['isolation'] !== 'read committed' || row['read_only'] !== 'off',
  };
}

/** A notice of the server, by the field that both libraries name alike. */
export interface ServerNotice {
  /** Name of the C function that raised it. */
  readonly routine?: string | undefined;
}

/**
 * Why a session is to be destroyed after this notice: somebody cancelled or terminated it while its commit waited for a synchronous
 * standby. The server then reports success, with a warning that nobody reads, of a commit that is on its own disk only: a
 * failover takes it back. To us that is a lost reply, and what is sent again finds out.
 */
export function lossByNotice({ routine }: ServerNotice): ConnectionLostError | undefined {
  if (routine !== 'SyncRepWaitForLSN') return undefined;
  return new ConnectionLostError('The wait for a synchronous standby was broken off: the outcome is unknown.');
}

/** @throws DatabaseError unless it is the answer to a COMMIT that has committed. */
export function assertCommitted(commandTag: string): void {
  if (commandTag !== 'COMMIT') throw rolledBack();
}

/** The server answers COMMIT of a transaction in which a statement failed with ROLLBACK, and not with an error. */
export function rolledBack(): DatabaseError {
  return new DatabaseError('The transaction was rolled back: one of its statements had failed.', { sqlState: '25P02' });
}
