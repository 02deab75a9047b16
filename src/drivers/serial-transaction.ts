import { ConnectionUnavailableError } from '../errors/database-errors.js';
import type { DriverTransaction, SqlParameter, SqlRow, StatementOptions } from './driver.js';

/** Runs one statement on the transaction's connection. */
export type RunStatement = (
  text: string,
  parameters: readonly SqlParameter[] | undefined,
  options: StatementOptions | undefined,
) => Promise<SqlRow[]>;

/**
 * What the body of a transaction sees. Sends one statement at a time: a statement's time limit must not run while it waits
 * for others, and what a library does with statements that it has not sent yet when the connection breaks differs.
 */
export class SerialTransaction implements DriverTransaction {
  readonly client: unknown;
  readonly destroy: (cause: Error) => void;
  readonly #run: RunStatement;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(client: unknown, run: RunStatement, destroy: (cause: Error) => void) {
    this.client = client;
    this.#run = run;
    this.destroy = destroy;
  }

  readonly query = <Row extends SqlRow>(
    text: string,
    parameters?: readonly SqlParameter[],
    options?: StatementOptions,
  ): Promise<readonly Row[]> => {
    const turn = this.#last.then(async () => {
      // The connection may be another transaction's by now, and the statement would become part of that.
      if (this.#isOver) throw new ConnectionUnavailableError('The transaction is over, nothing was sent.');
      return (await this.#run(text, parameters, options)) as unknown as readonly Row[];
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  };

  /** Waits for what the body has sent and not waited for, so that it is part of the transaction. */
  async settled(): Promise<void> {
    let last: Promise<unknown> | undefined;
    while (last !== this.#last) {
      last = this.#last;
      await last;
    }
  }

  /** Refuses whatever is sent, or has not had its turn. */
  end(): void {
    this.#isOver = true;
  }
}
