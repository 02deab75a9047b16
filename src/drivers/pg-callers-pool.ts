import { PoolEndedError } from '../errors/database-errors.js';
import { DEFAULT_MAX_CONNECTIONS } from './driver-options.js';
import { connectionFailure, noConnectionWithin } from './failures.js';
import type { PgClient, PgPool } from './pg-library.js';
import { PgSession } from './pg-session.js';
import { type Session, type SessionSource, type SessionTraits, UNKNOWN_TRAITS } from './session.js';
import { WaitingLine } from './waiting-line.js';

const ignoreError = (): void => undefined;

interface CheckoutEvents {
  /** The session was destroyed. */
  readonly onLost: () => void;
  /** The pool has its client back, whole or not. */
  readonly onReturned: () => void;
}

/** A client of the caller's pool, from checkout to release. */
class CheckedOutSession extends PgSession {
  readonly #client: PgClient;
  readonly #events: CheckoutEvents;
  #traits: SessionTraits;

  constructor(client: PgClient, traits: SessionTraits, events: CheckoutEvents) {
    super(client);
    this.#client = client;
    this.#traits = traits;
    this.#events = events;
    // A pool takes its own listener off while a client is checked out; without one, a broken socket ends the process.
    client.on('error', ignoreError);
  }

  get traits(): SessionTraits {
    return this.#traits;
  }

  async open(): Promise<SessionTraits> {
    this.#traits = await this.probe(false);
    return this.#traits;
  }

  release(): void {
    if (this.destroyedBy !== undefined) return;
    this.stopListening();
    this.#client.release();
    this.#client.off('error', ignoreError);
    this.#events.onReturned();
  }

  protected cut(cause: Error): void {
    this.#events.onLost();
    this.stopListening();
    // The pool's own listener takes over, and the pool ends the client, which cuts the socket of one that waits.
    this.#client.release(cause);
    this.#client.off('error', ignoreError);
    // Not only when whoever had it is done: a body may hang on a connection that is dead.
    this.#events.onReturned();
  }
}

/**
 * Hands out the clients of a pool that is the caller's. Leaves their sessions as they are. The pool serves whoever asks first; so no more
 * than it has clients ask it at once, and the others wait here, where who is urgent goes first.
 */
export class PgCallersPool implements SessionSource {
  readonly #pool: PgPool;
  readonly #known = new WeakMap<PgClient, { readonly traits: SessionTraits; readonly losses: number }>();
  /** Sessions that were destroyed; after one, the others are to be asked again: see {@link SessionPool}. */
  #losses = 0;
  /** Who has asked the pool for a client. */
  readonly #asking = new Set<(failure: Error) => void>();
  readonly #needsListener: boolean;
  /** Who waits for a turn to ask it. */
  readonly #waiting = new WaitingLine<() => void>();
  /** How many more may ask the pool. Of a wrapper that does not show its size, as many as like. */
  #turns: number;
  readonly max: number;

  constructor(pool: PgPool) {
    this.#pool = pool;
    this.max = pool.options?.max ?? DEFAULT_MAX_CONNECTIONS;
    this.#turns = pool.options?.max ?? Infinity;
    // The pool emits the error of an idle client that broke, after it has removed it. Unheard, it ends the process.
    this.#needsListener = pool.listenerCount('error') === 0;
    if (this.#needsListener) pool.on('error', ignoreError);
    pool.on('remove', this.#onRemoved);
  }

  /** The pool decides, and says so later. */
  acquireIdle(): undefined {
    return undefined;
  }

  async acquire(timeoutMs: number, isUrgent: boolean): Promise<Session> {
    const deadline = performance.now() + timeoutMs;
    if (this.#turns > 0) this.#turns -= 1;
    else await this.#takeTurn(timeoutMs, isUrgent);
    let isOver = false;
    const onReturned = (): void => {
      if (!isOver) this.#giveTurn();
      isOver = true;
    };
    try {
      return await this.#checkOut(deadline - performance.now(), timeoutMs, onReturned);
    } catch (error) {
      onReturned();
      throw error;
    }
  }

  #takeTurn(timeoutMs: number, isUrgent: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.remove(take);
        reject(noConnectionWithin(timeoutMs));
      }, timeoutMs);
      this.#waiting.push(take, isUrgent);
    });
  }

  #giveTurn(): void {
    const take = this.#waiting.shift();
    if (take === undefined) this.#turns += 1;
    else take();
  }

  #checkOut(remainingMs: number, timeoutMs: number, onReturned: () => void): Promise<Session> {
    if (this.#pool.ending === true) return Promise.reject(poolEnded());
    return new Promise((resolve, reject) => {
      let isTooLate = false;
      let opening: CheckedOutSession | undefined;
      const giveUp = (failure: Error): void => {
        settled();
        isTooLate = true;
        opening?.destroy(failure);
        reject(failure);
      };
      // Own limit, since the pool may wait for ever.
      const timer = setTimeout(() => {
        giveUp(noConnectionWithin(timeoutMs));
      }, remainingMs);
      const settled = (): void => {
        clearTimeout(timer);
        this.#asking.delete(giveUp);
      };
      this.#asking.add(giveUp);
      this.#pool.connect((error, client) => {
        if (isTooLate) {
          client?.release();
          return;
        }
        this.#asking.delete(giveUp);
        if (client === undefined) {
          settled();
          reject(connectionFailure(error));
          return;
        }
        const known = this.#known.get(client);
        const losses = this.#losses;
        const session = new CheckedOutSession(client, known?.traits ?? UNKNOWN_TRAITS, {
          onLost: () => {
            this.#losses += 1;
          },
          onReturned,
        });
        if (known?.losses === losses) {
          settled();
          resolve(session);
          return;
        }
        opening = session;
        session.open().then(
          (found) => {
            settled();
            this.#known.set(client, { traits: found, losses });
            resolve(session);
          },
          (cause: unknown) => {
            settled();
            session.destroy(new Error('The session could not be set up.', { cause }));
            reject(connectionFailure(cause));
          },
        );
      });
    });
  }

  close(): Promise<void> {
    if (this.#needsListener) this.#pool.off('error', ignoreError);
    this.#pool.off('remove', this.#onRemoved);
    return Promise.resolve();
  }

  /** A pool that is ended lets go of its clients, and forgets who waits for one. */
  readonly #onRemoved = (): void => {
    if (this.#pool.ending !== true) return;
    for (const giveUp of this.#asking) giveUp(poolEnded());
  };
}

function poolEnded(): PoolEndedError {
  return new PoolEndedError(
    'The pool that Holdfast was given has been ended, nothing was sent. Close Holdfast first and end the pool after that; for now, close it and launch another one.',
  );
}
