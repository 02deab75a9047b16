/** A value that can be bound to a `$n` placeholder. Every placeholder in Holdfast's SQL carries an explicit cast. */
export type SqlParameter =
  string | number | boolean | null | Uint8Array | readonly (string | number | boolean | null)[];

/**
 * A row as Holdfast's SQL returns it. Statements cast their results so that both drivers agree:
 * `text`, `int4`/`float8` (number), `bool`, arrays of those, `null`. `int8`, `timestamptz`, `json` and
 * `numeric` differ between drivers and are therefore cast to text or float8 in the statement.
 */
export type SqlRow = Readonly<Record<string, unknown>>;

/** How one statement is to be sent. */
export interface StatementOptions {
  /**
   * Name of the server-side prepared statement. Without it the statement is parsed at each call. A driver that finds out
   * that the connection does not keep prepared statements (PgBouncer in transaction mode) sends it unprepared from then on.
   */
  readonly prepare?: string;
  /**
   * Milliseconds until the caller gives up. The connection that still waits for the answer is destroyed,
   * never reused; whether the statement took effect is then unknown. Default: the driver's `statementTimeoutMs`.
   */
  readonly timeoutMs?: number;
  /**
   * Takes the next connection that is free, before all statements that wait for one: for what keeps a lease alive. Otherwise more
   * work than the connections can do would take away the leases, and who takes over has the same work to do once more. Default: false.
   */
  readonly isUrgent?: boolean;
}

/** Something that runs statements: a pool, or one transaction. */
export interface SqlExecutor {
  /**
   * Runs one statement and returns its rows. Without parameters and without `prepare` the text may hold several
   * statements (a migration); they are one implicit transaction, and which rows come back is then unspecified.
   * @throws DatabaseError with `sqlState` when the server refused, `ConnectionLostError` when the outcome is unknown,
   * `ConnectionUnavailableError` when there was no connection to send it on, `PoolEndedError` when there will never be one.
   */
  query<Row extends SqlRow>(
    text: string,
    parameters?: readonly SqlParameter[],
    options?: StatementOptions,
  ): Promise<readonly Row[]>;
}

/** One open database transaction on one connection. Statements are sent one at a time, in the order of the calls. */
export interface DriverTransaction extends SqlExecutor {
  /**
   * The client that the user's own library knows: a `pg` client or a porsager `TransactionSql`.
   * It must not be used once the transaction is over.
   */
  readonly client: unknown;
  /**
   * Runs a last statement and commits, in one round trip: COMMIT is sent before the statement's reply has come. If the statement
   * fails, nothing is committed. Its rows are not read. Waits for the statements before it; the body must return then.
   * Undefined where the connection is the caller's or a pooler's.
   *
   * @throws DatabaseError when the server refused the statement or COMMIT; ConnectionLostError: whether it has committed is unknown,
   * and the server may still be about to get both.
   */
  readonly commitWith:
    | ((
        text: string,
        parameters: readonly SqlParameter[],
        options: StatementOptions & { readonly prepare: string },
      ) => Promise<void>)
    | undefined;
  /**
   * Cuts the connection, for a body that may go on using the client although its transaction is to end: back in the pool, the
   * connection would run its statements outside of any transaction, or in somebody else's. The server rolls back.
   */
  destroy(cause: Error): void;
}

/** What a {@link NotificationStream} tells its owner. */
export interface NotificationHandlers {
  /** A notification arrived. It is a hint: never the only way to learn something. */
  readonly onNotification: (channel: string, payload: string) => void;
  /**
   * The connection is listening (at first, and again after it was replaced). Whatever was notified meanwhile is lost,
   * so everyone who waits must check once.
   */
  readonly onListening: () => void;
  /** The connection is lost, or an attempt to replace it failed; the driver goes on trying, with backoff. */
  readonly onLost: (cause: unknown) => void;
}

/** A listening connection of its own, replaced for as long as it is not closed. */
export interface NotificationStream {
  close(): Promise<void>;
}

/** The one way in which Holdfast talks to PostgreSQL. One conformance suite runs against every driver. */
export interface Driver extends SqlExecutor {
  /** `pg` or `postgres`; for messages and metrics. */
  readonly name: string;
  /** Most connections that it has open for statements and transactions. */
  readonly maxConnections: number;
  /**
   * Runs `body` in one transaction: commits when it returns, rolls back when it throws. When the connection breaks this
   * may reject while `body` is still running; what that sends from then on is refused and changes nothing.
   * BEGIN may be sent with the body's first statement.
   * @throws ConnectionLostError when the reply to COMMIT did not arrive: the outcome is unknown. ConnectionUnavailableError when no
   * transaction could be begun, even if the body has thrown what came of that. PoolEndedError when none ever will be.
   */
  transaction<Result>(
    body: (transaction: DriverTransaction) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;
  /** Opens a connection that listens on `channels`; checks it for life, so that a half-open one is found. */
  listen(channels: readonly string[], handlers: NotificationHandlers): NotificationStream;
  /** Ends what this driver opened. A pool that the caller owns stays open. Idempotent. */
  close(): Promise<void>;
}

/** Isolation and access mode of a transaction; PostgreSQL's terms. Default: read committed, read write, whatever the server's defaults are. */
export interface TransactionOptions {
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable';
  readonly access?: 'read write' | 'read only';
  /**
   * Milliseconds that the transaction may sit idle between two statements before the server ends it and its session
   * (`idle_in_transaction_session_timeout`), so that a frozen process does not keep its row locks. Default: the server's.
   */
  readonly idleTimeoutMs?: number;
  /**
   * Letters, digits and hyphens that the setting `holdfast.transaction` has until this transaction ends, and not after that: how
   * a later statement finds out whether the body has ended it.
   */
  readonly marker?: string;
}
