import { ConnectionLostError, ConnectionUnavailableError } from '../errors/database-errors.js';
import { connectionFailure, noConnectionWithin } from './failures.js';
import type { Session, SessionSource } from './session.js';
import { WaitingLine } from './waiting-line.js';

/** Milliseconds that sessions in use get when the pool is closed. */
const CLOSE_GRACE_MS = 2_000;

/** A session that a {@link SessionPool} can keep. */
export interface PoolableSession extends Session {
  /** False once the connection is gone. */
  readonly isUsable: boolean;
  /** Connects and sets the session up. Called once, first. */
  open(): Promise<void>;
  /** Asks the server again what it asked when it was opened, and so waits for synchronous standbys. */
  prove(): Promise<void>;
  /** Says goodbye to the server and closes the connection, within a bound. */
  end(): Promise<void>;
}

/** What a session tells the pool that it is from. */
export interface PoolEvents {
  readonly onReleased: (session: PoolableSession) => void;
  /** The connection is gone, whether in use, idle or on its way. Called once. */
  readonly onClosed: (session: PoolableSession) => void;
}

/** Someone who waits for a session. */
interface Request {
  readonly resolve: (session: Session) => void;
  readonly reject: (cause: unknown) => void;
  isSettled: boolean;
}

/**
 * Connections of our own, the same for both libraries. What was used last is used next, so that under little load a few
 * connections stay warm. Connections stay open until the pool is closed: the number is small, and a process that has
 * nothing to do keeps polling anyway.
 *
 * When one was lost, the others are asked once more what they were asked when they were opened. What the lost one left
 * behind may be visible to them and not be with the synchronous standbys, if the wait for those was broken off (see `PROBE_SESSION`):
 * whoever sends the same again would take it for an answer.
 */
export class SessionPool implements SessionSource {
  readonly #create: (events: PoolEvents) => PoolableSession;
  readonly max: number;
  readonly #connectTimeoutMs: number;
  readonly #events: PoolEvents;
  readonly #open = new Set<PoolableSession>();
  /** Since when each is free, by `performance.now()`: it had just answered then. */
  readonly #idle: { readonly session: PoolableSession; readonly since: number }[] = [];
  readonly #waiting = new WaitingLine<Request>();
  /** Being opened, for whoever is first in line by then. */
  readonly #opening = new Set<PoolableSession>();
  /** How many sessions had been lost when this one was proved last. */
  readonly #proofs = new WeakMap<PoolableSession, number>();
  #losses = 0;
  #isClosed = false;
  #onEmpty: () => void = () => undefined;

  constructor(
    limits: { readonly max: number; readonly connectTimeoutMs: number },
    create: (events: PoolEvents) => PoolableSession,
  ) {
    this.max = limits.max;
    this.#connectTimeoutMs = limits.connectTimeoutMs;
    this.#create = create;
    this.#events = {
      onReleased: (session) => {
        this.#giveBack(session);
      },
      onClosed: (session) => {
        this.#remove(session);
      },
    };
  }

  acquireIdle(): Session | undefined {
    const idle = this.#idle.at(-1);
    if (idle === undefined || !this.#isProved(idle.session)) return undefined;
    this.#idle.pop();
    return idle.session;
  }

  acquire(timeoutMs: number, isUrgent: boolean): Promise<Session> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.remove(request);
        request.reject(noConnectionWithin(timeoutMs));
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
      const idle = this.#idle.pop();
      if (idle !== undefined) this.#handOver(idle.session, request);
      else if (this.#open.size >= this.max) this.#waiting.push(request, isUrgent);
      else if (isUrgent) {
        this.#waiting.push(request, isUrgent);
        this.#openFor(undefined);
      } else this.#openFor(request);
    });
  }

  distrust(since: number): void {
    for (const { session } of this.#idle.filter((idle) => idle.since <= since)) {
      session.destroy(
        new ConnectionLostError('Another connection has stopped to answer, and this one has not answered since.'),
      );
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const request of this.#waiting.clear()) request.reject(new Error('The driver is closed.'));
    const ended = this.#idle.splice(0).map(({ session }) => session.end());
    await Promise.all([...ended, this.#untilEmpty()]);
  }

  /** Waits for sessions in use; those that take too long are destroyed. */
  async #untilEmpty(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        for (const session of this.#open) session.destroy(new ConnectionUnavailableError('The driver was closed.'));
        resolve();
      }, CLOSE_GRACE_MS);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * @param request Undefined: whoever is first in line by then. Who is urgent waits there, since the server may have none left to give,
   * or not answer, while those that are in use come free all the time.
   */
  #openFor(request: Request | undefined): void {
    const session = this.#create(this.#events);
    this.#open.add(session);
    if (request === undefined) this.#opening.add(session);
    this.#prepare(session, session.open(), request);
  }

  #handOver(session: PoolableSession, request: Request): void {
    if (this.#isProved(session)) request.resolve(session);
    else this.#prepare(session, session.prove(), request);
  }

  #isProved(session: PoolableSession): boolean {
    return this.#proofs.get(session) === this.#losses;
  }

  #prepare(session: PoolableSession, preparing: Promise<void>, request: Request | undefined): void {
    const losses = this.#losses;
    const since = performance.now();
    // Whoever asked may give up sooner. This limit is for the connection: without it, it would take up a place for good.
    const timer = setTimeout(() => {
      session.destroy(new ConnectionUnavailableError(`No session within ${this.#connectTimeoutMs} ms.`));
      this.distrust(since);
    }, this.#connectTimeoutMs);
    preparing.then(
      () => {
        clearTimeout(timer);
        this.#proofs.set(session, losses);
        this.#opening.delete(session);
        // Whoever asked may have given up meanwhile; the next one is glad of it.
        if (request === undefined || request.isSettled) this.#giveBack(session);
        else request.resolve(session);
      },
      (cause: unknown) => {
        clearTimeout(timer);
        session.destroy(new Error('The session could not be set up.', { cause }));
        if (this.#opening.delete(session)) this.#notOpened(cause);
        else if (request?.isSettled === false) request.reject(cause);
      },
    );
  }

  /** Who is in line goes on waiting for those that are in use, if there are any. */
  #notOpened(cause: unknown): void {
    if (this.#open.size > 0 || this.#isClosed) return;
    this.#waiting.shiftUrgent()?.reject(cause);
    this.#openForFirst();
  }

  #openForFirst(): void {
    if (this.#waiting.hasUrgent) {
      this.#openFor(undefined);
      return;
    }
    const request = this.#waiting.shift();
    if (request !== undefined) this.#openFor(request);
  }

  #giveBack(session: PoolableSession): void {
    if (!session.isUsable) return;
    if (this.#isClosed) {
      void session.end();
      return;
    }
    const request = this.#waiting.shift();
    if (request === undefined) this.#idle.push({ session, since: performance.now() });
    else this.#handOver(session, request);
  }

  #remove(session: PoolableSession): void {
    this.#open.delete(session);
    this.#losses += 1;
    const index = this.#idle.findIndex((idle) => idle.session === session);
    if (index !== -1) this.#idle.splice(index, 1);
    if (this.#open.size === 0) this.#onEmpty();
    // What could not be opened is not tried once more for the same one: see #notOpened.
    if (!this.#isClosed && !this.#opening.has(session)) this.#openForFirst();
  }
}
