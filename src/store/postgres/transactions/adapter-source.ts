import type { DataSourceAdapter } from '../../../api/data-source.js';
import { pause } from '../backoff.js';
import { MARKER, replyOf, type SourceOptions, type SourceTransaction, type TransactionSource } from './source.js';
import { isPassing, sqlStateOf } from './sql-state.js';

/** How much longer than a transaction may be idle it is left alone before it is asked whether it is still there, in milliseconds. */
const IDLE_MARGIN_MS = 500;

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
    let abandoned: { readonly failure: unknown } | undefined;
    try {
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
            if (open.isAbandoned) {
              abandoned = first;
              await open.unused(idleTimeoutMs + IDLE_MARGIN_MS);
            }
            throw error;
          }
        },
        { isolation, readOnly },
      );
    } catch (error) {
      // On a connection that is gone the library's ROLLBACK fails, which is not what became of the transaction.
      throw abandoned === undefined ? error : abandoned.failure;
    }
    if (result === undefined)
      throw new TypeError('The transaction of a data source returned without having run its body.');
    return result.value;
  }
}

class AdapterTransaction implements SourceTransaction {
  readonly client: unknown;
  readonly #adapter: DataSourceAdapter<unknown>;
  /** Fires when a body that was given up while it ran has settled. */
  #settled: AbortController | undefined;

  constructor(adapter: DataSourceAdapter<unknown>, client: unknown) {
    this.#adapter = adapter;
    this.client = client;
  }

  readonly abandon = (_cause: Error, running: Promise<unknown>): void => {
    const settled = new AbortController();
    const settle = (): void => {
      settled.abort();
    };
    running.then(settle, settle);
    this.#settled = settled;
  };

  get isAbandoned(): boolean {
    return this.#settled !== undefined;
  }

  /**
   * Waits until nobody uses the connection any more: a body that was given up has settled; or has sent nothing for so long that the
   * server has ended the connection. To ask for that is to send something, so it is asked less often than it takes.
   */
  async unused(idleMs: number): Promise<void> {
    const settled = this.#settled?.signal ?? AbortSignal.abort();
    for (;;) {
      await pause(idleMs, settled);
      if (settled.aborted || !(await this.isAlive())) return;
    }
  }

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
