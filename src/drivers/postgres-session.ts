import type { SqlParameter, SqlRow } from './driver.js';
import { READ_ARRAY_TYPES, registerArrayTypes } from './postgres-array-types.js';
import { PostgresConnection, type PostgresConnectionOptions } from './postgres-connection.js';
import type { PostgresStatements, RawResult } from './postgres-library.js';
import {
  assertCommitted,
  lossByNotice,
  PROBE_SESSION,
  type SessionTraits,
  setUpOwn,
  type TransactionRunner as Runner,
  type TransactionStart,
  UNKNOWN_TRAITS,
} from './session.js';
import type { PoolableSession, PoolEvents } from './session-pool.js';
import { decoderOf, encodeText } from './sql-values.js';

/**
 * Type `unknown`: the server infers the parameter's type from the cast, as with no type at all, and the library finds no
 * serializer for it. With its serializers a JSON text would be encoded again, and `'true'` would become false.
 */
const UNKNOWN_OID = 705;

type Results = RawResult | readonly RawResult[];

/**
 * The statements of a transaction that wait for their outcome. When the connection breaks, the library rejects those that
 * it has written, and leaves those that it has not in a queue that nobody looks at any more.
 */
class TransactionRunner {
  readonly #waiting = new Set<(cause: Error) => void>();

  track<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      work.then(resolve, reject).finally(() => {
        this.#waiting.delete(reject);
      });
    });
  }

  abandon(cause: unknown): void {
    const error = cause instanceof Error ? cause : new Error('The transaction ended.', { cause });
    for (const reject of this.#waiting) reject(error);
  }
}

/** One connection of the pool. */
export class PostgresSession implements PoolableSession {
  readonly #connection: PostgresConnection;
  readonly #events: PoolEvents;
  #traits = UNKNOWN_TRAITS;
  /** Whether array types are still to be made known: only those who use the client of a transaction need them. */
  #needsArrays: boolean;
  #destroyedBy: Error | undefined;

  constructor(
    settings: Omit<PostgresConnectionOptions, 'onClosed' | 'onNotification' | 'onNotice'>,
    events: PoolEvents,
  ) {
    const { target } = settings;
    this.#events = events;
    this.#needsArrays = typeof target === 'string' || target.fetch_types;
    this.#connection = new PostgresConnection({
      ...settings,
      onClosed: () => {
        events.onClosed(this);
      },
      onNotice: (notice) => {
        const loss = lossByNotice(notice);
        if (loss !== undefined) this.destroy(loss);
      },
    });
  }

  get traits(): SessionTraits {
    return this.#traits;
  }

  get destroyedBy(): Error | undefined {
    return this.#destroyedBy;
  }

  get isUsable(): boolean {
    return !this.#connection.isClosed;
  }

  /** Connects; finds out what the session is, and sets it up where it is ours alone. */
  async open(): Promise<void> {
    const { sql } = this.#connection;
    const result = await this.#connection.open(PROBE_SESSION);
    const traits = await setUpOwn(decodeRows(result)[0], result.state.pid, (text) => send(sql, text, [], false));
    // Read at each statement. Without it the library would prepare its ROLLBACK, and what users send, behind a pooler.
    if (traits.isPooled) sql.options.prepare = false;
    this.#traits = traits;
  }

  async prove(): Promise<void> {
    await this.run(PROBE_SESSION, [], undefined);
  }

  async run(text: string, parameters: readonly SqlParameter[], statementName: string | undefined): Promise<SqlRow[]> {
    return this.#run(this.#connection.sql, text, parameters, statementName);
  }

  async transaction<Result>(
    start: TransactionStart,
    body: (client: unknown, runner: Runner) => Promise<Result>,
    watch: () => () => void,
  ): Promise<Result> {
    let stop = watch();
    const runner = new TransactionRunner();
    // The assertion keeps the compiler from believing that nothing is ever assigned: it does not follow the closure.
    let done = undefined as { readonly result: Result; readonly commit: Promise<Results> } | undefined;
    try {
      await this.#learnArrays();
      // Only the library can make the `TransactionSql` that its users know, so it is the one to send BEGIN and ROLLBACK.
      await this.#connection.sql.begin(start.modes, async (transaction) => {
        try {
          // Sent ahead of the body's first statement, and so without a round trip of its own: what it failed with aborts
          // the transaction, and is what is reported.
          const first = start.settings.length === 0 ? undefined : sendAhead(transaction, start.settings.join('; '));
          stop();
          const result = await body(transaction, {
            run: (...statement) => runner.track(this.#run(transaction, ...statement)),
          });
          await first;
          // Not waited for here, so that it costs no round trip of its own: the library's COMMIT, written right behind it, finds no
          // transaction. The library's cannot be relied upon. It is a prepared statement, and when the server does not know that, be
          // it behind a pooler or after DEALLOCATE, the library sends it again in what is an aborted transaction by then, and takes the
          // server's answer, which is ROLLBACK, for a success.
          done = { result, commit: sendAhead(transaction, 'COMMIT') };
        } finally {
          stop();
          stop = watch();
        }
      });
    } catch (error) {
      runner.abandon(error);
      // Once COMMIT was sent, its own reply is what counts.
      if (done === undefined) throw error;
    } finally {
      stop();
    }
    if (done === undefined) throw new Error('begin returned without having run its body');
    assertCommitted(last(await done.commit).command);
    return done.result;
  }

  destroy(cause: Error): void {
    if (this.#destroyedBy !== undefined) return;
    this.#destroyedBy = cause;
    this.#connection.destroy();
  }

  release(): void {
    this.#events.onReleased(this);
  }

  end(): Promise<void> {
    return this.#connection.end();
  }

  async #learnArrays(): Promise<void> {
    if (!this.#needsArrays) return;
    registerArrayTypes(this.#connection.sql.options, await this.run(READ_ARRAY_TYPES, [], undefined));
    this.#needsArrays = false;
  }

  async #run(
    sql: PostgresStatements,
    text: string,
    parameters: readonly SqlParameter[],
    statementName: string | undefined,
  ): Promise<SqlRow[]> {
    // The library hides a pooler's mismatches by preparing once more under another name, and leaves a statement behind
    // on the server each time: so nothing is prepared behind a pooler. It chooses the names itself.
    const isPrepared = statementName !== undefined && !this.#traits.isPooled;
    if (this.#connection.isClosed) throw new Error('The connection was closed.');
    return decodeRows(last(await send(sql, text, parameters, isPrepared)));
  }
}

function send(
  sql: PostgresStatements,
  text: string,
  parameters: readonly SqlParameter[],
  prepare: boolean,
): Promise<Results> {
  const values = parameters.map((parameter) => sql.typed(encodeText(parameter), UNKNOWN_OID));
  return sql.unsafe(text, values, { prepare, simple: !prepare && values.length === 0 }).raw();
}

/** Sends a statement at once, before anything that is sent after this call. */
function sendAhead(sql: PostgresStatements, text: string): Promise<Results> {
  const sent = send(sql, text, [], false);
  // A query is sent when someone looks at its outcome.
  sent.catch(() => undefined);
  return sent;
}

/** Several statements give several results. */
function last(result: Results): RawResult {
  return 'command' in result ? result : (result.at(-1) as RawResult);
}

function decodeRows(result: RawResult): SqlRow[] {
  const { columns } = result;
  if (result.length === 0 || columns === undefined || columns === null) return [];
  const decoders = columns.map((column) => decoderOf(column.type));
  // The library goes on counting where a statement that failed after its first rows left off: the next result then begins
  // with as many holes. Filtering leaves them out.
  const rows = result.filter(() => true);
  return rows.map((values) => {
    const row: Record<string, unknown> = {};
    for (let index = 0; index < columns.length; index++) {
      const value = values[index];
      // Both arrays have one entry a column.
      const { name } = columns[index] as { name: string };
      row[name] = value === null || value === undefined ? null : decoders[index]?.(value.toString('utf8'));
    }
    return row;
  });
}
