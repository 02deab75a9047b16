import { Socket } from 'node:net';

import { ConnectionLostError, ConnectionUnavailableError } from '../errors/database-errors.js';
import { isPreparedStatementMismatch, statementFailure } from './failures.js';
import { type Begin, BeginAhead } from './pg-begin-ahead.js';
import { PgControlStatements } from './pg-control-statements.js';
import { PgLastStatement } from './pg-last-statement.js';
import type { PgClientClass, PgConnectionConfig } from './pg-library.js';
import { type GroupEnd, messagesOf, type MessageStatement } from './pg-messages.js';
import { type PgOpening, PgSession, type Watch } from './pg-session.js';
import { encodeText } from './sql-values.js';
import type { PgWire } from './pg-wire.js';
import { type PgWireTap, tapOf } from './pg-wire-tap.js';
import { rolledBack, type SessionTraits, type TransactionStart, UNKNOWN_TRAITS } from './session.js';
import type { PoolableSession, PoolEvents } from './session-pool.js';

/** Milliseconds that a connection gets to say goodbye before its socket is cut. */
const CLOSE_GRACE_MS = 2_000;

/**
 * How long a connection may have been idle for BEGIN to be sent ahead, in milliseconds. One that was idle longer may be half-open by
 * now, which is found out by waiting for BEGIN: the statements of the application have no time limit.
 */
const FRESH_MS = 5_000;
/** A statement, its parameters and its name. */
type LastStatement = Parameters<NonNullable<PgOpening['commitWith']>>;

/** A connection that we opened. Its socket is ours, since `pg` has no way to give up on a half-open one. */
export class OwnPgSession extends PgSession implements PoolableSession {
  readonly #client: InstanceType<PgClientClass>;
  readonly #socket: Socket;
  readonly #events: PoolEvents;
  #traits = UNKNOWN_TRAITS;
  #isClosed = false;
  readonly #tap: PgWireTap | undefined;
  readonly #statements = new PgControlStatements();
  #usedAt = performance.now();

  constructor(Client: PgClientClass, config: PgConnectionConfig, events: PoolEvents) {
    const socket = new Socket();
    const client = new Client({ ...config, stream: () => socket });
    super(client);
    this.#client = client;
    this.#socket = socket;
    this.#events = events;
    this.#tap = tapOf(client);
    client.on('error', () => {
      this.#close();
    });
    client.on('end', () => {
      this.#close();
    });
  }

  get traits(): SessionTraits {
    return this.#traits;
  }

  get isUsable(): boolean {
    return !this.#isClosed;
  }

  async open(): Promise<void> {
    await this.#client.connect();
    await this.prove();
  }

  async prove(): Promise<void> {
    this.#traits = await this.probe(true);
  }

  release(): void {
    this.#usedAt = performance.now();
    this.#events.onReleased(this);
  }

  async end(): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.once('close', resolve));
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_GRACE_MS);
    this.#client.end().catch(() => undefined);
    if (!this.#socket.closed) await closed;
    clearTimeout(timer);
  }

  protected override begin(start: TransactionStart, watch: Watch): PgOpening | Promise<PgOpening> {
    const tap = this.#tap;
    if (tap === undefined || this.#traits.isPooled) return super.begin(start, watch);
    if (performance.now() - this.#usedAt > FRESH_MS) return this.#beginWaiting(start, watch);
    return new OpeningAhead(this, tap, this.#statements, start, watch);
  }

  async #beginWaiting(start: TransactionStart, watch: Watch): Promise<PgOpening> {
    const waitedFor = await super.begin(start, watch);
    let isCommitted = false;
    const onCommitted = (): void => {
      isCommitted = true;
    };
    return {
      ...waitedFor,
      get isCommitted() {
        return isCommitted;
      },
      commitWith: (...statement) => this.commitWith(statement, { onCommitted }),
    };
  }

  commitWith(
    [text, parameters, name]: LastStatement,
    { ahead, onCommitted }: { readonly ahead?: BeginAhead; readonly onCommitted: () => void },
  ): Promise<void> {
    const values = parameters.map(encodeText);
    return new Promise((resolve, reject) => {
      let statements: readonly MessageStatement[] = [];
      const write = (wire: PgWire): void => {
        ahead?.beforeStatement();
        statements = this.#statements.commitWith(text, name, values);
        wire.stream.write(messagesOf(statements, 'sync'));
      };
      this.#client.query(
        new PgLastStatement({ text, values }, write, (error, tag) => {
          if (error === undefined && tag === 'COMMIT') {
            onCommitted();
            resolve();
            return;
          }
          if (error !== undefined) this.#statements.forget(statements);
          reject(error ?? rolledBack());
        }),
      );
    });
  }

  protected cut(): void {
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#events.onClosed(this);
  }
}

/** A transaction whose BEGIN goes with its first statement. */
class OpeningAhead implements PgOpening, Begin {
  readonly count: number;
  isCommitted = false;
  readonly #session: OwnPgSession;
  readonly #statements: PgControlStatements;
  readonly #start: TransactionStart;
  readonly #watch: Watch;
  readonly #ahead: BeginAhead;
  #stop: (() => void) | undefined;
  #refusal: Error | undefined;
  #isCommitting = false;

  constructor(
    session: OwnPgSession,
    tap: PgWireTap,
    statements: PgControlStatements,
    start: TransactionStart,
    watch: Watch,
  ) {
    this.count = 1 + start.settings.length;
    this.#session = session;
    this.#statements = statements;
    this.#start = start;
    this.#watch = watch;
    this.#ahead = new BeginAhead(tap, this);
  }

  messages(end: GroupEnd): Buffer {
    return this.#statements.begin(this.#start, end);
  }

  onSent(): void {
    this.#stop = this.#watch();
  }

  onAnswered(): void {
    this.#stop?.();
  }

  onRefused(error: unknown): void {
    this.#refusal = refusalOf(error);
    // The body may go on all the same, with statements that would take effect by themselves.
    this.#session.destroy(this.#refusal);
  }

  get isBegun(): boolean {
    return this.#ahead.isSent;
  }

  get refusal(): Error | undefined {
    if (this.#refusal !== undefined || !this.#ahead.isUnanswered || this.#isCommitting) return this.#refusal;
    // Given up for want of an answer, and not by the body.
    const { destroyedBy } = this.#session;
    return destroyedBy instanceof ConnectionLostError ? destroyedBy : undefined;
  }

  readonly commitWith = (...statement: LastStatement): Promise<void> => {
    this.#isCommitting = true;
    return this.#session.commitWith(statement, { ahead: this.#ahead, onCommitted: this.#onCommitted });
  };

  readonly #onCommitted = (): void => {
    this.isCommitted = true;
  };

  end(): void {
    this.#stop?.();
    this.#ahead.end();
  }
}

/** What the transaction failed with that could not begin. */
function refusalOf(error: unknown): Error {
  if (!isPreparedStatementMismatch(error)) return statementFailure(error);
  return new ConnectionUnavailableError('The connection has lost its prepared statements: nothing was done on it.', {
    cause: error,
  });
}
