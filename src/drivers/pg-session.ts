import { ConnectionUnavailableError } from '../errors/database-errors.js';
import type { SqlParameter, SqlRow } from './driver.js';
import { connectionFailure } from './failures.js';
import type { PgClient, PgPool, PgResult } from './pg-library.js';
import {
  assertCommitted,
  PROBE_SESSION,
  readTraits,
  SET_SESSION_MODES,
  type Session,
  type SessionSource,
  type SessionTraits,
  type TransactionStart,
} from './session.js';
import { decoderOf, encodeArray } from './sql-values.js';

/** Passed with each statement, so that type parsers which the application registered do not reach our rows. */
const TYPES = { getTypeParser: decoderOf };
const NOT_PROBED: SessionTraits = { isPooled: false, hasHostileDefaults: false };
const ignoreError = (): void => undefined;

/** A `PoolClient`, from checkout to release. */
export class PgSession implements Session {
  readonly traits: SessionTraits;
  readonly #client: PgClient;
  #destroyedBy: Error | undefined;

  constructor(client: PgClient, traits: SessionTraits) {
    this.#client = client;
    this.traits = traits;
    // A pool takes its own listener off while a client is checked out; without one, a broken socket ends the process.
    client.on('error', ignoreError);
  }

  /** Goes on as a session of which more is known. */
  with(traits: SessionTraits): PgSession {
    this.#client.off('error', ignoreError);
    return new PgSession(this.#client, traits);
  }

  get destroyedBy(): Error | undefined {
    return this.#destroyedBy;
  }

  async run(text: string, parameters: readonly SqlParameter[], statementName: string | undefined): Promise<SqlRow[]> {
    return (await this.#send(text, parameters, statementName)).rows;
  }

  async transaction<Result>(
    start: TransactionStart,
    body: (client: unknown, run: Session['run']) => Promise<Result>,
    watch: () => () => void,
  ): Promise<Result> {
    const first = start.first === undefined ? '' : `; ${start.first}`;
    await watched(watch, this.#send(`BEGIN ${start.modes}${first}`, [], undefined));
    let result: Result;
    try {
      result = await body(this.#client, this.run.bind(this));
    } catch (error) {
      await this.#rollBack(watch);
      throw error;
    }
    const { command } = await watched(watch, this.#send('COMMIT', [], undefined));
    assertCommitted(command);
    return result;
  }

  destroy(cause: Error): void {
    if (this.#destroyedBy !== undefined) return;
    this.#destroyedBy = cause;
    // The pool's own listener takes over, and the pool ends the client, which cuts the socket of one that waits.
    this.#client.release(cause);
    this.#client.off('error', ignoreError);
  }

  release(): void {
    if (this.#destroyedBy !== undefined) return;
    this.#client.release();
    this.#client.off('error', ignoreError);
  }

  #send(text: string, parameters: readonly SqlParameter[], name: string | undefined): Promise<PgResult> {
    const values = parameters.length === 0 ? undefined : encode(parameters);
    const config = {
      text,
      types: TYPES,
      ...(name === undefined ? undefined : { name }),
      ...(values === undefined ? undefined : { values }),
    };
    return new Promise((resolve, reject) => {
      // With a callback `pg` skips the stack trace that it otherwise takes for each failed statement.
      this.#client.query(config, (error, result) => {
        if (error) reject(error);
        // Several statements give several results.
        else resolve(Array.isArray(result) ? (result.at(-1) as PgResult) : (result as PgResult));
      });
    });
  }

  async #rollBack(watch: () => () => void): Promise<void> {
    if (this.#destroyedBy !== undefined) return;
    try {
      await watched(watch, this.#send('ROLLBACK', [], undefined));
    } catch (error) {
      // The end of the connection rolls back as well. What the body threw is what the caller must see.
      this.destroy(error instanceof Error ? error : new Error('ROLLBACK failed', { cause: error }));
    }
  }
}

async function watched<Result>(watch: () => () => void, work: Promise<Result>): Promise<Result> {
  const stop = watch();
  try {
    return await work;
  } finally {
    stop();
  }
}

/** `pg` writes arrays itself, three times slower; the rest it writes as we would. */
function encode(parameters: readonly SqlParameter[]): (string | number | boolean | null | Uint8Array)[] {
  return parameters.map((parameter) => (Array.isArray(parameter) ? encodeArray(parameter) : parameter)) as (
    string | number | boolean | null | Uint8Array
  )[];
}

/** Hands out the clients of a `pg` pool. */
export class PgSessionSource implements SessionSource {
  readonly #pool: PgPool;
  readonly #isOwn: boolean;
  readonly #end: () => Promise<void>;
  readonly #traits = new WeakMap<PgClient, SessionTraits>();

  /** @param end ends what the driver opened; a caller's pool is not ended. */
  constructor(pool: PgPool, isOwn: boolean, end: () => Promise<void>) {
    this.#pool = pool;
    this.#isOwn = isOwn;
    this.#end = end;
  }

  acquire(timeoutMs: number): Promise<Session> {
    return new Promise((resolve, reject) => {
      let isTooLate = false;
      let probing: PgSession | undefined;
      // Own limit, since the caller's pool may wait for ever.
      const timer = setTimeout(() => {
        isTooLate = true;
        const failure = new ConnectionUnavailableError(`No connection within ${timeoutMs} ms, nothing was sent.`);
        probing?.destroy(failure);
        reject(failure);
      }, timeoutMs);
      this.#pool.connect((error, client) => {
        if (isTooLate) {
          client?.release();
          return;
        }
        if (client === undefined) {
          clearTimeout(timer);
          reject(connectionFailure(error));
          return;
        }
        const traits = this.#traits.get(client);
        if (traits !== undefined) {
          clearTimeout(timer);
          resolve(new PgSession(client, traits));
          return;
        }
        probing = new PgSession(client, NOT_PROBED);
        this.#probe(client, probing).then(
          (session) => {
            clearTimeout(timer);
            resolve(session);
          },
          (cause: unknown) => {
            clearTimeout(timer);
            reject(connectionFailure(cause));
          },
        );
      });
    });
  }

  close(): Promise<void> {
    return this.#end();
  }

  /** Finds out once for each connection what it is, and sets it up where it is ours alone. */
  async #probe(client: PgClient, session: PgSession): Promise<PgSession> {
    try {
      const rows = await session.run(PROBE_SESSION, [], undefined);
      let traits = readTraits(rows[0], client.processID ?? null);
      if (this.#isOwn && traits.hasHostileDefaults && !traits.isPooled) {
        await session.run(SET_SESSION_MODES, [], undefined);
        traits = { ...traits, hasHostileDefaults: false };
      }
      this.#traits.set(client, traits);
      return session.with(traits);
    } catch (error) {
      session.destroy(error instanceof Error ? error : new Error('The session could not be set up.', { cause: error }));
      throw error;
    }
  }
}
