import type { CallersTransaction } from '../api/queue.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { StatementRunner } from '../store/queue-store.js';

/** What `pg` and `postgres` have in common once their names are left out. By shape: there may be several copies of them. */
interface Shapes {
  readonly query?: (text: string, values: unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;
  readonly unsafe?: (text: string, parameters: unknown[]) => Promise<readonly unknown[]>;
  /** Pools of `pg` have it, and no client. */
  readonly totalCount?: number;
  /** Recent clients of `pg`: what the server said last, `I` for idle; null before they are connected. */
  readonly getTransactionStatus?: () => string | null;
  /** An `sql` of `postgres` has it, and not what `begin` passes. */
  readonly begin?: unknown;
}

/**
 * How to run a statement inside the caller's transaction.
 * @throws InvalidArgumentError for anything but a single connection, and for one that says that no transaction is open on it.
 */
export function runnerOf(transaction: CallersTransaction): StatementRunner {
  const shapes: Shapes = (transaction as object | null | undefined) ?? {};
  if (shapes.totalCount !== undefined || shapes.begin !== undefined) {
    throw new InvalidArgumentError(
      'transaction is a pool. Pass the client with the open transaction: a client of pg, or what sql.begin of postgres passes.',
    );
  }
  if (typeof shapes.unsafe === 'function') {
    const { unsafe } = shapes;
    return (text, parameter) => unsafe.call(transaction, text, [parameter]).catch(sayIfElsewhere);
  }
  if (typeof shapes.query === 'function') {
    if (typeof shapes.getTransactionStatus === 'function') checkIsOpen(shapes.getTransactionStatus());
    const { query } = shapes;
    return async (text, parameter) => (await query.call(transaction, text, [parameter]).catch(sayIfElsewhere)).rows;
  }
  throw new InvalidArgumentError('transaction is neither a client of pg nor what sql.begin of postgres passes.');
}

/** Without one, the statement would commit by itself, and a fence would guard nothing. */
function checkIsOpen(status: string | null): void {
  if (status === null)
    throw new InvalidArgumentError('transaction is a client that is not connected: await its connect().');
  if (status === 'I') {
    throw new InvalidArgumentError(
      'transaction is a client on which no transaction is open: await query("BEGIN") first.',
    );
  }
}

/** SQLSTATEs of a schema or function that is not there. */
const NOT_THERE: ReadonlySet<unknown> = new Set(['3F000', '42883']);

/** All other errors are for the caller to see as the library throws them: it may have to begin its transaction anew. */
function sayIfElsewhere(error: unknown): never {
  if (error instanceof Error && 'code' in error && NOT_THERE.has(error.code)) {
    throw new InvalidArgumentError(
      'transaction is not in the database of Holdfast, or that has another schema or release: its function is not there.',
      { cause: error },
    );
  }
  throw error;
}
