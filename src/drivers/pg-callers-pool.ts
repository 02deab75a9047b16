import { ConnectionUnavailableError, PoolEndedError } from '../errors/database-errors.js';
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

/** A client of the caller's pool, from checkout to release. It has a listener for errors: see {@link PgCallersPool}. */
class CheckedOutSession extends PgSession {
  readonly #client: PgClient;
  readonly #events: CheckoutEvents;
  #traits: SessionTraits;

  constructor(client: PgClient, traits: SessionTraits, events: CheckoutEvents) {
    super(client);
    this.#client = client;
    this.#traits = traits;
    this.#events = events;
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

/** Somebody who waits for a turn to ask the pool. */
interface Waiter {
  /** @param client what somebody else has got from the pool, and gives away together with its turn */
  readonly take: (client: PgClient | undefined) => void;
  readonly giveUp: (failure: Error) => void;
}

/** Somebody who has a turn. */
interface Asker {
  readonly isUrgent: boolean;
  readonly take: (client: PgClient) => void;
  readonly fail: (failure: Error) => void;
}

/** One call of the pool, and for whom it is by now: nobody, when that one has given up. */
interface Ask {
  asker: Asker | undefined;
}

/** What one statement's wait for a connection takes from its beginning on. */
interface Wait {
  readonly timeoutMs: number;
  /** By `performance.now()`. */
  readonly deadline: number;
}

/**
 * Hands out the clients of a pool that is the caller's. Leaves their sessions as they are. The pool serves whoever asks first; so no more
 * than it has clients ask it at once, and the others wait here, where who is urgent goes first. Whatever the pool gives to one of us who
 * is not urgent goes to one who is: to let that one ask when its turn comes would put it behind all the others who use the pool.
 */
export class PgCallersPool implements SessionSource {
  readonly #pool: PgPool;
  readonly #known = new WeakMap<PgClient, { readonly traits: SessionTraits; readonly losses: number }>();
  /** Sessions that were destroyed; after one, the others are to be asked again: see {@link SessionPool}. */
  #losses = 0;
  /** What the pool has not answered yet. */
  readonly #asks = new Set<Ask>();
  /** Who waits for the pool, or for the session to be set up. */
  readonly #givingUp = new Set<(failure: Error) => void>();
  readonly #needsListener: boolean;
  readonly #waiting = new WaitingLine<Waiter>();
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
    const wait: Wait = { timeoutMs, deadline: performance.now() + timeoutMs };
    let given = await this.#takeTurn(wait, (waiter) => {
      this.#waiting.push(waiter, isUrgent);
    });
    for (;;) {
      const client = given ?? (await this.#ask(wait, isUrgent));
      const urgent = isUrgent ? undefined : this.#waiting.shiftUrgent();
      if (urgent === undefined) return await this.#open(client, wait);
      urgent.take(client);
      given = await this.#takeTurn(wait, (waiter) => {
        this.#waiting.putBack(waiter);
      });
    }
  }

  /** Waits for a turn, which whoever has it gives back, or away. Answers the client that may come with it. */
  async #takeTurn(wait: Wait, getInLine: (waiter: Waiter) => void): Promise<PgClient | undefined> {
    if (this.#turns > 0) {
      this.#turns -= 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        take: (client) => {
          clearTimeout(timer);
          resolve(client);
        },
        giveUp: (failure) => {
          clearTimeout(timer);
          reject(failure);
        },
      };
      const timer = startTimer(wait, () => {
        this.#waiting.remove(waiter);
        reject(noConnectionWithin(wait.timeoutMs));
      });
      getInLine(waiter);
    });
  }

  #giveTurn(): void {
    const waiter = this.#waiting.shift();
    if (waiter === undefined) this.#turns += 1;
    else waiter.take(undefined);
  }

  /** Asks the pool for a client. The turn is given back if there is none. */
  async #ask(wait: Wait, isUrgent: boolean): Promise<PgClient> {
    try {
      return await this.#connect(wait, isUrgent);
    } catch (error) {
      this.#giveTurn();
      throw error;
    }
  }

  #connect(wait: Wait, isUrgent: boolean): Promise<PgClient> {
    if (this.#pool.ending === true) return Promise.reject(poolEnded());
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        clearTimeout(timer);
        this.#givingUp.delete(giveUp);
      };
      const asker: Asker = {
        isUrgent,
        take: (client) => {
          settled();
          resolve(client);
        },
        fail: (failure) => {
          settled();
          reject(failure);
        },
      };
      const giveUp = (failure: Error): void => {
        for (const ask of this.#asks) if (ask.asker === asker) ask.asker = undefined;
        asker.fail(failure);
      };
      // Own limit, since the pool may wait for ever.
      const timer = startTimer(wait, () => {
        giveUp(noConnectionWithin(wait.timeoutMs));
      });
      this.#givingUp.add(giveUp);
      this.#askPool({ asker });
    });
  }

  #askPool(ask: Ask): void {
    this.#asks.add(ask);
    this.#pool.connect((error, client) => {
      this.#asks.delete(ask);
      if (client === undefined) {
        ask.asker?.fail(connectionFailure(error));
        return;
      }
      // At once: the pool has taken its own listener off, and without one a broken socket ends the process. What the server says last may be
      // in the same packet as what lets the client in.
      client.on('error', ignoreError);
      if (ask.asker?.isUrgent !== true) {
        const urgent = [...this.#asks].find(({ asker }) => asker?.isUrgent === true);
        if (urgent !== undefined) [ask.asker, urgent.asker] = [urgent.asker, ask.asker];
      }
      if (ask.asker === undefined) {
        client.release();
        client.off('error', ignoreError);
      } else ask.asker.take(client);
    });
  }

  /** The session of a client. The turn is given back when the pool has the client again. */
  #open(client: PgClient, wait: Wait): Session | Promise<Session> {
    const known = this.#known.get(client);
    const losses = this.#losses;
    let isReturned = false;
    const session = new CheckedOutSession(client, known?.traits ?? UNKNOWN_TRAITS, {
      onLost: () => {
        this.#losses += 1;
      },
      onReturned: () => {
        if (!isReturned) this.#giveTurn();
        isReturned = true;
      },
    });
    if (known?.losses === losses) return session;
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        clearTimeout(timer);
        this.#givingUp.delete(giveUp);
      };
      const giveUp = (failure: Error): void => {
        settled();
        session.destroy(failure);
        reject(failure);
      };
      const timer = startTimer(wait, () => {
        giveUp(noConnectionWithin(wait.timeoutMs));
      });
      this.#givingUp.add(giveUp);
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
  }

  close(): Promise<void> {
    if (this.#needsListener) this.#pool.off('error', ignoreError);
    this.#pool.off('remove', this.#onRemoved);
    this.#giveUpAll(() => new ConnectionUnavailableError('The driver is closed, nothing was sent.'));
    return Promise.resolve();
  }

  /** A pool that is ended lets go of its clients, and forgets who waits for one. */
  readonly #onRemoved = (): void => {
    if (this.#pool.ending === true) this.#giveUpAll(poolEnded);
  };

  #giveUpAll(failure: () => Error): void {
    for (const waiter of this.#waiting.clear()) waiter.giveUp(failure());
    for (const giveUp of this.#givingUp) giveUp(failure());
  }
}

function startTimer({ deadline }: Wait, onOver: () => void): NodeJS.Timeout {
  return setTimeout(onOver, Math.max(0, deadline - performance.now()));
}

function poolEnded(): PoolEndedError {
  return new PoolEndedError(
    'The pool that Holdfast was given has been ended, nothing was sent. Close Holdfast first and end the pool after that; for now, close it and launch another one.',
  );
}
