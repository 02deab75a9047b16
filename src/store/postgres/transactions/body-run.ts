import { ConnectionLostError, ConnectionUnavailableError } from '../../../errors/database-errors.js';
import { HoldfastError } from '../../../errors/holdfast-error.js';
import type { StepRecord } from '../../store.js';
import type { TransactionJob } from '../../transaction-store.js';
import { aborted, NotRecorded } from './joined-transaction.js';
import type { SourceTransaction } from './source.js';
import { isConflict, isPassing, sqlStateOf } from './sql-state.js';
import type { TryEnd } from './transaction-tries.js';

/** SQLSTATE: a statement of this transaction has failed before. */
const IN_FAILED_TRANSACTION = '25P02';

/** One run of a body in one transaction: tells what an error that ended it means. */
export class BodyRun {
  readonly #job: TransactionJob;
  #hasBegun = false;
  /** Set when it was the body that threw. */
  #thrown: { readonly error: unknown; readonly isAlive: boolean } | undefined;

  constructor(job: TransactionJob) {
    this.#job = job;
  }

  run(open: SourceTransaction): Promise<StepRecord> {
    this.#hasBegun = true;
    return this.#job.body(open).catch(async (error: unknown) => {
      // What libraries throw on a connection that broke has no name in common: the connection is asked.
      const isAlive = (sqlStateOf(error) !== undefined && !isPassing(error)) || (await open.isAlive());
      this.#thrown = { error, isAlive };
      throw error;
    });
  }

  /** What the transaction's end by this error means. Not for a COMMIT whose outcome is unknown. */
  endOf(error: unknown): TryEnd {
    if (error instanceof NotRecorded) return endOfCheckpoint(error);
    if (isConflict(error)) return { kind: 'again', because: 'conflict', error };
    // BEGIN travels with the body's first statement: what that failed with was not the body's doing.
    const isNotBegun =
      !this.#hasBegun || (error instanceof ConnectionUnavailableError && error !== this.#thrown?.error);
    if (isNotBegun && isPassing(error)) return { kind: 'again', because: 'unavailable', error };
    if (this.#thrown === undefined ? this.#hasBegun && isOfTheConnection(error) : !this.#thrown.isAlive) {
      return { kind: 'again', because: 'connection-lost', error };
    }
    const isSwallowed = this.#thrown === undefined && sqlStateOf(error) === IN_FAILED_TRANSACTION;
    return { kind: 'settled', answer: { kind: 'failed', error: isSwallowed ? aborted(error) : error } };
  }
}

/** For what a library throws after the body: what the server has not said, and we have not, is about the connection to it. */
function isOfTheConnection(error: unknown): boolean {
  if (error instanceof ConnectionLostError || isPassing(error)) return true;
  return sqlStateOf(error) === undefined && !(error instanceof HoldfastError);
}

function endOfCheckpoint({ end }: NotRecorded): TryEnd {
  switch (end.kind) {
    case 'again':
      return { kind: 'again', because: 'conflict', error: end.error };
    case 'denied':
      return { kind: 'settled', answer: end.denied };
    case 'failed':
      return { kind: 'settled', answer: end };
  }
}
