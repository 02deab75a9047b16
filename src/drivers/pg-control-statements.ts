import { type GroupEnd, messagesOf, type MessageStatement } from './pg-messages.js';
import type { TransactionStart } from './session.js';

/**
 * How many statements of transactions a session keeps prepared: there are a few, unless somebody makes up a new idle timeout
 * for each transaction.
 */
const MOST_PREPARED = 32;
const COMMIT = 'COMMIT';

/** The statements that a session prepares past its library: what begins transactions, and what ends them. */
export class PgControlStatements {
  /** Names by text. */
  readonly #prepared = new Map<string, string>();
  #named = 0;
  /** What begins a transaction, once all of it is prepared: the same bytes each time. */
  readonly #begins = new WeakMap<TransactionStart, Record<GroupEnd, Buffer>>();

  begin(start: TransactionStart, end: GroupEnd): Buffer {
    const known = this.#begins.get(start);
    if (known !== undefined) return known[end];
    const statements = [`BEGIN ${start.modes}`, ...start.settings].map((text) => this.#control(text));
    if (statements.every(({ isParsed }) => isParsed)) {
      const begin = { flush: messagesOf(statements, 'flush'), sync: messagesOf(statements, 'sync') };
      this.#begins.set(start, begin);
      return begin[end];
    }
    return messagesOf(statements, end);
  }

  /** A statement and COMMIT behind it. */
  commitWith(text: string, name: string, values: readonly (string | null)[]): readonly MessageStatement[] {
    return [this.#prepare(text, name, values), this.#control(COMMIT)];
  }

  /** One of these failed: it is not known which of them were parsed. */
  forget(statements: readonly MessageStatement[]): void {
    for (const { isParsed, text } of statements) if (!isParsed) this.#prepared.delete(text);
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
}
