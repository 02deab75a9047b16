import { createHash } from 'node:crypto';

import { ConnectionLostError, ConnectionUnavailableError } from '../errors/database-errors.js';
import type {
  Driver,
  DriverTransaction,
  NotificationHandlers,
  NotificationStream,
  SqlParameter,
  SqlRow,
  StatementOptions,
  TransactionOptions,
} from './driver.js';
import { DEFAULT_CONNECT_TIMEOUT_MS, DEFAULT_STATEMENT_TIMEOUT_MS, type DriverOptions } from './driver-options.js';
import { isPreparedStatementMismatch, statementFailure } from './failures.js';
import { listen, type OpenListener } from './listener.js';
import { SerialTransaction } from './serial-transaction.js';
import { type Session, type SessionSource, TransactionNotBegun, type TransactionRunner } from './session.js';
import { TransactionStarts } from './transaction-starts.js';

const NO_PARAMETERS: readonly SqlParameter[] = [];
const NO_OPTIONS: StatementOptions = {};

/** One statement, ready to be sent. */
interface Statement {
  readonly text: string;
  readonly parameters: readonly SqlParameter[];
  readonly name: string | undefined;
  readonly timeoutMs: number;
  readonly isUrgent: boolean;
}

/**
 * What is the same for every client library: time limits, classification of failures, prepared statements and their
 * fallback, transactions, notifications. The library's part is its {@link SessionSource} and {@link OpenListener}.
 */
export class SessionDriver implements Driver {
  readonly name: string;
  readonly #source: SessionSource;
  readonly #openListener: OpenListener;
  readonly #options: DriverOptions;
  readonly #statementTimeoutMs: number;
  readonly #connectTimeoutMs: number;
  readonly #names = new Map<string, string>();
  readonly #starts = new TransactionStarts();
  readonly #streams = new Set<NotificationStream>();
  /** Once a connection has shown that it does not keep prepared statements, none is prepared any more. */
  #canPrepare = true;
  #closing: Promise<void> | undefined;

  constructor(name: string, source: SessionSource, openListener: OpenListener, options: DriverOptions) {
    this.name = name;
    this.#source = source;
    this.#openListener = openListener;
    this.#options = options;
    this.#statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
  }

  get maxConnections(): number {
    return this.#source.max;
  }

  async query<Row extends SqlRow>(
    text: string,
    parameters: readonly SqlParameter[] = NO_PARAMETERS,
    options: StatementOptions = NO_OPTIONS,
  ): Promise<readonly Row[]> {
    const statement = this.#statement(text, parameters, options);
    const session =
      this.#acquireIdle() ??
      (await this.#source.acquire(Math.min(statement.timeoutMs, this.#connectTimeoutMs), statement.isUrgent));
    try {
      // SET does not reach every server connection behind a pooler, nor is the session of a caller's pool ours to set.
      const rows = session.traits.hasHostileDefaults
        ? await this.#runAlone(session, statement)
        : await this.#run(session, session, statement);
      return rows as readonly Row[];
    } finally {
      session.release();
    }
  }

  async transaction<Result>(
    body: (transaction: DriverTransaction) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    const session = this.#acquireIdle() ?? (await this.#source.acquire(this.#connectTimeoutMs, false));
    let current: SerialTransaction | undefined;
    // Whatever the body throws is the caller's, whether it looks like a failure of the connection or not.
    let thrown: { readonly error: unknown } | undefined;
    try {
      const result = await session.transaction(
        this.#starts.of(options),
        async (client, runner) => {
          const transaction = this.#open(session, client, runner);
          current = transaction;
          try {
            const returned = await body(transaction);
            if (transaction.isBusy) await transaction.settled();
            return returned;
          } catch (error) {
            thrown = { error };
            throw error;
          } finally {
            transaction.end();
          }
        },
        () => this.#watch(session, this.#statementTimeoutMs),
      );
      assertKept(session);
      return result;
    } catch (error) {
      if (error instanceof TransactionNotBegun) throw notBegun(session, error.cause);
      if (thrown !== undefined) throw thrown.error;
      throw sessionFailure(session, error);
    } finally {
      // Also when the body is still running because the connection broke under it.
      current?.end();
      session.release();
    }
  }

  listen(channels: readonly string[], handlers: NotificationHandlers): NotificationStream {
    if (this.#closing !== undefined) throw new ConnectionUnavailableError('The driver is closed.');
    const inner = listen(this.#openListener, channels, handlers, {
      ...this.#options.listener,
      connectTimeoutMs: this.#connectTimeoutMs,
    });
    const stream: NotificationStream = {
      close: async () => {
        this.#streams.delete(stream);
        await inner.close();
      },
    };
    this.#streams.add(stream);
    return stream;
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#source.close(), ...[...this.#streams].map((stream) => stream.close())]).then(
      () => undefined,
    );
    return this.#closing;
  }

  #acquireIdle(): Session | undefined {
    if (this.#closing !== undefined) throw new ConnectionUnavailableError('The driver is closed, nothing was sent.');
    return this.#source.acquireIdle();
  }

  #statement(text: string, parameters: readonly SqlParameter[], options: StatementOptions): Statement {
    const isPrepared = options.prepare !== undefined && this.#canPrepare;
    return {
      text,
      parameters,
      name: isPrepared ? this.#nameOf(text, options.prepare) : undefined,
      timeoutMs: options.timeoutMs ?? this.#statementTimeoutMs,
      isUrgent: options.isUrgent ?? false,
    };
  }

  /**
   * The name carries a hash of the text. Server connections behind a pooler are shared by processes, of several versions
   * during a deploy: a name alone could run a statement that another version prepared under it.
   */
  #nameOf(text: string, prefix: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
      name = `${prefix.slice(0, 40)}_${hash}`;
      this.#names.set(text, name);
    }
    return name;
  }

  async #run(session: Session, runner: Pick<Session, 'run'>, statement: Statement): Promise<SqlRow[]> {
    const { text, parameters, name, timeoutMs } = statement;
    const stop = this.#watch(session, timeoutMs);
    try {
      const rows = await runner.run(text, parameters, name);
      assertKept(session);
      return rows;
    } catch (error) {
      if (name !== undefined && isPreparedStatementMismatch(error)) {
        this.#canPrepare = false;
        return await runner.run(text, parameters, undefined).catch((cause: unknown) => {
          throw sessionFailure(session, cause);
        });
      }
      throw sessionFailure(session, error);
    } finally {
      stop();
    }
  }

  /** A statement that needs modes which its session does not have. */
  async #runAlone(session: Session, statement: Statement): Promise<SqlRow[]> {
    try {
      const rows = await session.transaction(
        this.#starts.of({}),
        (_client, runner) => this.#run(session, runner, inTransactionOf(session, statement)),
        () => this.#watch(session, statement.timeoutMs),
      );
      assertKept(session);
      return rows;
    } catch (error) {
      throw error instanceof TransactionNotBegun ? notBegun(session, error.cause) : sessionFailure(session, error);
    }
  }

  #open(session: Session, client: unknown, runner: TransactionRunner): SerialTransaction {
    const commitWith = this.#commitsWith(session, runner);
    return new SerialTransaction(
      client,
      (text, parameters, options) => {
        const statement = this.#statement(text, parameters ?? NO_PARAMETERS, options ?? NO_OPTIONS);
        return this.#run(session, runner, inTransactionOf(session, statement));
      },
      (cause) => {
        session.destroy(cause);
      },
      commitWith && ((text, parameters, options) => commitWith(this.#statement(text, parameters, options))),
    );
  }

  #commitsWith(
    session: Session,
    { commitWith }: TransactionRunner,
  ): ((statement: Statement) => Promise<void>) | undefined {
    if (commitWith === undefined || !this.#canPrepare) return undefined;
    return async ({ text, parameters, name, timeoutMs }) => {
      if (name === undefined) throw new TypeError('What commits has to be prepared.');
      const stop = this.#watch(session, timeoutMs);
      try {
        await commitWith(text, parameters, name);
        assertKept(session);
      } catch (error) {
        // The body has done away with them (DEALLOCATE). Nothing took effect, and another session has them.
        if (isPreparedStatementMismatch(error)) session.destroy(asLost(error));
        throw sessionFailure(session, error);
      } finally {
        stop();
      }
    };
  }

  /** Destroys the session when time is up; what is in flight on it then rejects. */
  #watch(session: Session, timeoutMs: number): () => void {
    const since = performance.now();
    const timer = setTimeout(() => {
      session.destroy(new ConnectionLostError(`No reply within ${timeoutMs} ms: the outcome is unknown.`));
      this.#source.distrust?.(since);
    }, timeoutMs);
    return () => {
      clearTimeout(timer);
    };
  }
}

/** A reply that came with a notice which makes it worth nothing; see `lossByNotice`. */
function assertKept(session: Session): void {
  if (session.destroyedBy instanceof ConnectionLostError) throw session.destroyedBy;
}

/** In a transaction a mismatch would abort it, too late for a second try. */
function inTransactionOf(session: Session, statement: Statement): Statement {
  return session.traits.isPooled ? { ...statement, name: undefined } : statement;
}

function asLost(cause: unknown): ConnectionLostError {
  return new ConnectionLostError('The session has lost its prepared statements, and was given up.', { cause });
}

/** What passes is a connection that could not be had: nothing took effect. */
function notBegun(session: Session, cause: unknown): Error {
  const failure = sessionFailure(session, cause);
  if (!(failure instanceof ConnectionLostError)) return failure;
  return new ConnectionUnavailableError('The connection broke at BEGIN: nothing took effect.', { cause: failure });
}

/** Classifies a failure, and takes a session with an unknown state out of use. */
function sessionFailure(session: Session, error: unknown): Error {
  const failure = session.destroyedBy ?? statementFailure(error);
  if (failure instanceof ConnectionLostError) session.destroy(failure);
  return failure;
}
