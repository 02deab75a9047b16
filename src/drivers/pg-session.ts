import type { SqlParameter, SqlRow } from './driver.js';
import { DatabaseError } from '../errors/database-errors.js';
import { statementFailure } from './failures.js';
import type { PgConnection, PgResult } from './pg-library.js';
import {
  assertCommitted,
  lossByNotice,
  PROBE_SESSION,
  readTraits,
  type ServerNotice,
  type Session,
  type SessionTraits,
  setUpOwn,
  TransactionNotBegun,
  type TransactionRunner,
  type TransactionStart,
} from './session.js';
import { decoderOf, encodeArray } from './sql-values.js';

/** Passed with each statement, so that type parsers which the application registered do not reach our rows. */
const TYPES = { getTypeParser: decoderOf };

export type Watch = () => () => void;

/** A transaction from BEGIN on. */
export interface PgOpening {
  /** Whether there is something to roll back. */
  readonly isBegun: boolean;
  /** Why BEGIN was refused, where that was not waited for. */
  readonly refusal: Error | undefined;
  /** By `commitWith`. */
  readonly isCommitted: boolean;
  /** See {@link TransactionRunner}. */
  readonly commitWith?: NonNullable<TransactionRunner['commitWith']>;
  /** Called when the transaction is over. */
  end(): void;
}

const WAITED_FOR: PgOpening = { isBegun: true, refusal: undefined, isCommitted: false, end: () => undefined };

/** A connection of `pg`; where it comes from and goes to is up to the subclass. */
export abstract class PgSession implements Session {
  readonly #connection: PgConnection;
  #destroyedBy: Error | undefined;

  readonly #onNotice = (notice: ServerNotice): void => {
    const loss = lossByNotice(notice);
    if (loss !== undefined) this.destroy(loss);
  };

  readonly #runs: TransactionRunner['run'] = (text, parameters, statementName) =>
    this.run(text, parameters, statementName);

  protected constructor(connection: PgConnection) {
    this.#connection = connection;
    connection.on('notice', this.#onNotice);
  }

  abstract get traits(): SessionTraits;
  abstract release(): void;
  /** Cuts the connection. Called once. */
  protected abstract cut(cause: Error): void;

  get destroyedBy(): Error | undefined {
    return this.#destroyedBy;
  }

  run(text: string, parameters: readonly SqlParameter[], statementName: string | undefined): Promise<SqlRow[]> {
    return send(this.#connection, text, parameters, statementName, rowsOf);
  }

  async transaction<Result>(
    start: TransactionStart,
    body: (client: unknown, runner: TransactionRunner) => Promise<Result>,
    watch: Watch,
  ): Promise<Result> {
    const begun = this.begin(start, watch);
    const opening = begun instanceof Promise ? await begun : begun;
    const { commitWith } = opening;
    const runner = commitWith === undefined ? this : { run: this.#runs, commitWith };
    // Whatever came of COMMIT, there is nothing to roll back.
    let isEnding = false;
    try {
      const result = await body(this.#connection, runner);
      isEnding = true;
      // Nothing was sent, or everything is over.
      if (!opening.isCommitted && opening.isBegun) assertCommitted(await this.#control('COMMIT', watch));
      return result;
    } catch (error) {
      if (!isEnding && !opening.isCommitted && opening.isBegun) await this.#rollBack(watch);
      throw opening.refusal === undefined ? error : new TransactionNotBegun(opening.refusal);
    } finally {
      opening.end();
    }
  }

  destroy(cause: Error): void {
    if (this.#destroyedBy !== undefined) return;
    this.#destroyedBy = cause;
    this.cut(cause);
  }

  /** The connection is somebody else's from here on. */
  protected stopListening(): void {
    this.#connection.off('notice', this.#onNotice);
  }

  /** Begins a transaction. */
  protected begin({ modes, settings }: TransactionStart, watch: Watch): PgOpening | Promise<PgOpening> {
    return this.#control([`BEGIN ${modes}`, ...settings].join('; '), watch).then(
      () => WAITED_FOR,
      async (error: unknown) => {
        // A setting that is refused leaves a transaction that has failed.
        if (statementFailure(error) instanceof DatabaseError) await this.#rollBack(watch);
        throw error;
      },
    );
  }

  /** Finds out what the session is, and sets it up where it is ours alone. */
  protected async probe(isOwn: boolean): Promise<SessionTraits> {
    const [row] = await this.run(PROBE_SESSION, [], undefined);
    const keyPid = this.#connection.processID ?? null;
    return isOwn ? await setUpOwn(row, keyPid, (text) => this.run(text, [], undefined)) : readTraits(row, keyPid);
  }

  async #rollBack(watch: Watch): Promise<void> {
    if (this.#destroyedBy !== undefined) return;
    try {
      await this.#control('ROLLBACK', watch);
    } catch (error) {
      // The end of the connection rolls back as well. What the body threw is what the caller must see.
      this.destroy(error instanceof Error ? error : new Error('ROLLBACK failed', { cause: error }));
    }
  }

  /** Runs a statement that controls the transaction; returns its command tag. */
  async #control(text: string, watch: Watch): Promise<string> {
    const stop = watch();
    try {
      return await send(this.#connection, text, [], undefined, commandOf);
    } finally {
      stop();
    }
  }
}

const rowsOf = (result: PgResult): SqlRow[] => result.rows;
const commandOf = (result: PgResult): string => result.command;

function send<Answer>(
  connection: PgConnection,
  text: string,
  parameters: readonly SqlParameter[],
  name: string | undefined,
  read: (result: PgResult) => Answer,
): Promise<Answer> {
  const values = parameters.length === 0 ? undefined : parameters.map(encode);
  return new Promise((resolve, reject) => {
    // With a callback `pg` skips the stack trace that it otherwise takes for each failed statement.
    connection.query({ text, name, values, types: TYPES }, (error, result) => {
      if (error) reject(error);
      // Several statements give several results.
      else resolve(read(Array.isArray(result) ? (result.at(-1) as PgResult) : (result as PgResult)));
    });
  });
}

/** `pg` writes arrays itself, more slowly; the rest it writes as we would. */
function encode(parameter: SqlParameter): string | number | boolean | null | Uint8Array {
  return typeof parameter === 'object' && parameter !== null && !(parameter instanceof Uint8Array)
    ? encodeArray(parameter)
    : parameter;
}
