import type { DataSourceAdapter } from '../../../api/data-source.js';
import { MARKER, replyOf, type SourceOptions, type SourceTransaction, type TransactionSource } from './source.js';
import { isPassing, sqlStateOf } from './sql-state.js';

/** What BEGIN says of it in transactions of our own connections. */
const PREPARE = `SELECT set_config('holdfast.transaction', p ->> 'marker', true)
  || set_config('idle_in_transaction_session_timeout', p ->> 'idle', true) AS reply
FROM (SELECT $1::text::json AS p) a`;

/** Transactions of a library that owns its connections. */
export class AdapterSource implements TransactionSource {
  /** The library's pool sees to it. */
  readonly slots = undefined;
  readonly #adapter: DataSourceAdapter<unknown>;

  constructor(adapter: DataSourceAdapter<unknown>) {
    this.#adapter = adapter;
  }

  async run<Result>(options: SourceOptions, work: (open: SourceTransaction) => Promise<Result>): Promise<Result> {
    const { isolation, readOnly, idleTimeoutMs } = options;
    let result: { readonly value: Result } | undefined;
    let first: { readonly failure: unknown } | undefined;
    await this.#adapter.transaction(
      async (client) => {
        // A library that begins again by itself does not know whether the first run has committed. Holdfast finds out, and begins
        // again itself.
        if (first !== undefined) throw first.failure;
        first = { failure: new Error('The library began the transaction again by itself.') };
        const open = new AdapterTransaction(this.#adapter, client);
        await open.reply(
          PREPARE,
          JSON.stringify({ marker: MARKER, idle: `${String(Math.max(1, Math.ceil(idleTimeoutMs)))}ms` }),
        );
        try {
          result = { value: await work(open) };
        } catch (error) {
          first = { failure: error };
          // Its connection goes back to the library's pool when this has rejected: not while a body may still use it.
          await open.abandoned;
          throw error;
        }
      },
      { isolation, readOnly },
    );
    if (result === undefined)
      throw new TypeError('The transaction of a data source returned without having run its body.');
    return result.value;
  }
}

class AdapterTransaction implements SourceTransaction {
  readonly client: unknown;
  readonly #adapter: DataSourceAdapter<unknown>;
  /** Settles with a body that was given up while it ran. */
  abandoned: Promise<unknown> = Promise.resolve();

  constructor(adapter: DataSourceAdapter<unknown>, client: unknown) {
    this.#adapter = adapter;
    this.client = client;
  }

  readonly abandon = (_cause: Error, running: Promise<unknown>): void => {
    this.abandoned = running.catch(() => undefined);
  };

  async reply(statement: string, parameter: string): Promise<string> {
    return replyOf(await this.#adapter.query(this.client, statement, parameter));
  }

  isAlive(): Promise<boolean> {
    return this.reply('SELECT $1::text AS reply', '').then(
      () => true,
      // In a transaction that has failed the server answers so, too.
      (error: unknown) => sqlStateOf(error) !== undefined && !isPassing(error),
    );
  }
}
