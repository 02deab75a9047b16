import { Socket } from 'node:net';

import type { SqlParameter } from './driver.js';
import { ConnectionLostError, ConnectionUnavailableError } from '../errors/database-errors.js';
import { isPreparedStatementMismatch, statementFailure } from './failures.js';
import { BeginAhead } from './pg-begin-ahead.js';
import { PgLastStatement } from './pg-last-statement.js';
import type { PgClientClass, PgConnectionConfig } from './pg-library.js';
import { messagesOf, type MessageStatement } from './pg-messages.js';
import { type PgOpening, PgSession, type Watch } from './pg-session.js';
import { encodeText } from './sql-values.js';
import { type PgWire, wireOf } from './pg-wire.js';
import { type SessionTraits, type TransactionStart, UNKNOWN_TRAITS } from './session.js';
import type { PoolableSession, PoolEvents } from './session-pool.js';

/** Milliseconds that a connection gets to say goodbye before its socket is cut. */
const CLOSE_GRACE_MS = 2_000;

/**
 * How long a connection may have been idle for BEGIN to be sent ahead, in milliseconds. One that was idle longer may be half-open by
 * now, which is found out by waiting for BEGIN: the statements of the application have no time limit.
 */
const FRESH_MS = 5_000;
/**
 * How many statements of transactions a session keeps prepared: there are a few, unless somebody makes up a new idle timeout
 * for each transaction.
 */
const MOST_PREPARED = 32;
const COMMIT = 'COMMIT';

/** A connection that we opened. Its socket is ours, since `pg` has no way to give up on a half-open one. */
export class OwnPgSession extends PgSession implements PoolableSession {
  readonly #client: InstanceType<PgClientClass>;
  readonly #socket: Socket;
  readonly #events: PoolEvents;
  #traits = UNKNOWN_TRAITS;
  #isClosed = false;
  readonly #wire: PgWire | undefined;
  /** Names of statements that we have prepared past the library, by text. */
  readonly #prepared = new Map<string, string>();
  #named = 0;
  #usedAt = performance.now();

  constructor(Client: PgClientClass, config: PgConnectionConfig, events: PoolEvents) {
    const socket = new Socket();
    const client = new Client({ ...config, stream: () => socket });
    super(client);
    this.#client = client;
    this.#socket = socket;
    this.#events = events;
    this.#wire = wireOf(client);
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
    const wire = this.#wire;
    if (wire === undefined || this.#traits.isPooled) return super.begin(start, watch);
    if (performance.now() - this.#usedAt > FRESH_MS) return this.#beginWaiting(start, watch);
    return this.#beginAhead(wire, start, watch);
  }

  async #beginWaiting(start: TransactionStart, watch: Watch): Promise<PgOpening> {
    const opening = await super.begin(start, watch);
    return { ...opening, commitWith: (...statement) => this.#commitWith(...statement) };
  }

  #beginAhead(wire: PgWire, { modes, settings }: TransactionStart, watch: Watch): PgOpening {
    const texts = [`BEGIN ${modes}`, ...settings];
    let stop: (() => void) | undefined;
    let refusal: Error | undefined;
    let isCommitting = false;
    const ahead = new BeginAhead(
      wire,
      {
        count: texts.length,
        messages: (options) =>
          messagesOf(
            texts.map((text) => this.#control(text)),
            options,
          ),
      },
      {
        onSent: () => {
          stop = watch();
        },
        onAnswered: () => {
          stop?.();
        },
        onRefused: (error) => {
          refusal = refusalOf(error);
          // The body may go on all the same, with statements that would take effect by themselves.
          this.destroy(refusal);
        },
      },
    );
    // Given up for want of an answer, and not by the body.
    const whyLost = (): Error | undefined =>
      this.destroyedBy instanceof ConnectionLostError ? this.destroyedBy : undefined;
    return {
      get isBegun() {
        return ahead.isSent;
      },
      get refusal() {
        return refusal ?? (ahead.isUnanswered && !isCommitting ? whyLost() : undefined);
      },
      commitWith: (text, parameters, name) => {
        isCommitting = true;
        return this.#commitWith(text, parameters, name, ahead);
      },
      end: () => {
        stop?.();
        ahead.end();
      },
    };
  }

  #commitWith(text: string, parameters: readonly SqlParameter[], name: string, ahead?: BeginAhead): Promise<string> {
    const values = parameters.map(encodeText);
    return new Promise((resolve, reject) => {
      let statements: readonly MessageStatement[] = [];
      const write = (wire: PgWire): void => {
        ahead?.send();
        statements = [this.#prepare(text, name, values), this.#control(COMMIT)];
        wire.stream.write(messagesOf(statements, 'sync'));
      };
      this.#client.query(
        new PgLastStatement({ text, values }, write, (error, tag) => {
          if (error === undefined) {
            resolve(tag);
            return;
          }
          for (const statement of statements) if (!statement.isParsed) this.#prepared.delete(statement.text);
          reject(error);
        }),
      );
    });
  }

  /** A statement without parameters; prepared, unless there are too many. */
  #control(text: string): MessageStatement {
    if (this.#prepared.size >= MOST_PREPARED && !this.#prepared.has(text))
      return { name: '', text, values: [], isParsed: false };
    return this.#prepare(text, 'holdfast_control', []);
  }

  /** No name is used twice, since it is not known of a statement that failed whether it was parsed. */
  #prepare(text: string, prefix: string, values: readonly (string | null)[]): MessageStatement {
    const known = this.#prepared.get(text);
    if (known !== undefined) return { name: known, text, values, isParsed: true };
    const name = `${prefix}_${String(++this.#named)}`;
    this.#prepared.set(text, name);
    return { name, text, values, isParsed: false };
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

/** What the transaction failed with that could not begin. */
function refusalOf(error: unknown): Error {
  if (!isPreparedStatementMismatch(error)) return statementFailure(error);
  return new ConnectionUnavailableError('The connection has lost its prepared statements: nothing was done on it.', {
    cause: error,
  });
}
