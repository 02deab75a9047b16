import { randomUUID } from 'node:crypto';
import type { SqlParameter } from '../../../drivers/driver.js';
import type { TransactionModes } from '../../../api/data-source.js';
import { DataSourceError } from '../../../errors/transaction-errors.js';
import type { OpenTransaction } from '../../transaction-store.js';

/**
 * What the setting `holdfast.transaction` is in transactions of this process. One for all of them: it goes with the transaction, so
 * that another one which the body began has none, and the statement that sets it can be prepared.
 */
export const MARKER = randomUUID();

/** How to begin a transaction. */
export interface SourceOptions extends TransactionModes {
  readonly idleTimeoutMs: number;
}

/** An open transaction that can be asked. */
export interface SourceTransaction extends OpenTransaction {
  /**
   * Runs a statement with one parameter, `$1`, that returns one column, `reply`, and one row.
   * @throws whatever the library throws; `sqlStateOf` knows what the server said.
   */
  reply(statement: string, parameter: string): Promise<string>;
  /**
   * Runs a prepared statement that returns nothing, and commits, in one round trip. Undefined where that cannot be done.
   * @throws as `reply` does; without an answer, both may still be on their way.
   */
  readonly commitWith?: ((statement: string, parameters: readonly SqlParameter[]) => Promise<void>) | undefined;
  /** Whether the connection is still there, as far as one can tell. For who has met an error. */
  isAlive(): Promise<boolean>;
}

/** Where transactions run: a pool of ours or the caller's, or a library that owns its connections. */
export interface TransactionSource {
  /** How many transactions may be open at once, on all sources of the same pool; undefined: the pool sees to it. */
  readonly slots: { readonly pool: object; readonly count: number } | undefined;
  /** Commits when `work` returns, rolls back when it throws, and throws that. */
  run<Result>(options: SourceOptions, work: (open: SourceTransaction) => Promise<Result>): Promise<Result>;
}

/**
 * Reads the one reply of a statement.
 * @throws DataSourceError when the rows are not of the documented form: to take that for an answer would be to guess.
 */
export function replyOf(rows: unknown): string {
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  const reply: unknown = typeof row === 'object' && row !== null && 'reply' in row ? row.reply : undefined;
  if (typeof reply === 'string') return reply;
  throw new DataSourceError(
    'The "query" of a data source has to return the rows as an array of objects: the statement has one column, "reply".',
  );
}
