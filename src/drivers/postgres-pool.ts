import { ConnectionUnavailableError } from '../errors/database-errors.js';
import { connectionFailure } from './failures.js';
import { PostgresConnection, type PostgresConnectionOptions } from './postgres-connection.js';
import { PostgresSession } from './postgres-session.js';
import type { Session, SessionSource } from './session.js';

/** Someone who waits for a session. */
interface Request {
  readonly resolve: (session: PostgresSession) => void;
  readonly reject: (cause: unknown) => void;
  isSettled: boolean;
}

/** A pool of connections, each an instance of the library (see {@link PostgresConnection}). Connections stay open. */
export class PostgresPool implements SessionSource {
  readonly #settings: Omit<PostgresConnectionOptions, 'onClosed' | 'onNotification'>;
  readonly #max: number;
  readonly #open = new Set<PostgresSession>();
  readonly #idle: PostgresSession[] = [];
  readonly #waiting: Request[] = [];
  #isClosed = false;
  #onEmpty: () => void = () => undefined;

  constructor(settings: Omit<PostgresConnectionOptions, 'onClosed' | 'onNotification'>, max: number) {
    this.#settings = settings;
    this.#max = max;
  }

  acquire(timeoutMs: number): Promise<Session> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return Promise.resolve(idle);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const index = this.#waiting.indexOf(request);
        if (index !== -1) this.#waiting.splice(index, 1);
        request.reject(new ConnectionUnavailableError(`No connection within ${timeoutMs} ms, nothing was sent.`));
      }, timeoutMs);
      const request: Request = {
        isSettled: false,
        resolve: (session) => {
          clearTimeout(timer);
          request.isSettled = true;
          resolve(session);
        },
        reject: (cause) => {
          clearTimeout(timer);
          request.isSettled = true;
          reject(connectionFailure(cause));
        },
      };
      if (this.#open.size < this.#max) this.#openFor(request);
      else this.#waiting.push(request);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const request of this.#waiting.splice(0)) request.reject(new Error('The driver is closed.'));
    const ended = this.#idle.splice(0).map((session) => session.end());
    await Promise.all([...ended, this.#untilEmpty()]);
  }

  /** Waits for sessions in use; those that take too long are destroyed. */
  async #untilEmpty(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        for (const session of this.#open) session.destroy(new Error('The driver was closed.'));
        resolve();
      }, CLOSE_GRACE_MS);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #openFor(request: Request): void {
    const connection = new PostgresConnection({
      ...this.#settings,
      onClosed: () => {
        this.#remove(session);
      },
    });
    const session = new PostgresSession(connection, (released) => {
      this.#giveBack(released);
    });
    this.#open.add(session);
    session.open().then(
      () => {
        // Whoever asked may have given up meanwhile; the next one is glad of it.
        if (request.isSettled) this.#giveBack(session);
        else request.resolve(session);
      },
      (cause: unknown) => {
        session.destroy(new Error('The session could not be set up.', { cause }));
        if (!request.isSettled) request.reject(cause);
      },
    );
  }

  #giveBack(session: PostgresSession): void {
    if (!session.isUsable) return;
    if (this.#isClosed) {
      void session.end();
      return;
    }
    const request = this.#waiting.shift();
    if (request === undefined) this.#idle.push(session);
    else request.resolve(session);
  }

  /** The connection is gone, whether in use, idle or on its way. */
  #remove(session: PostgresSession): void {
    this.#open.delete(session);
    const index = this.#idle.indexOf(session);
    if (index !== -1) this.#idle.splice(index, 1);
    if (this.#open.size === 0) this.#onEmpty();
    if (this.#isClosed) return;
    const request = this.#waiting.shift();
    if (request !== undefined) this.#openFor(request);
  }
}

/** Milliseconds that sessions in use get when the pool is closed. */
const CLOSE_GRACE_MS = 2_000;
