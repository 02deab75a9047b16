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
  readonly commitWith: DriverTransaction['commitWith'];
  readonly destroy: (cause: Error) => void;
  readonly #run: RunStatement;
  #last: Promise<unknown> | undefined;
  #open = 0;
  #isOver = false;

  constructor(
    client: unknown,
    run: RunStatement,
    destroy: (cause: Error) => void,
    commitWith: DriverTransaction['commitWith'],
  ) {
    this.client = client;
    this.#run = run;
    this.destroy = destroy;
    this.commitWith = commitWith && ((...statement) => this.#inTurn(() => commitWith(...statement)));
  }

  readonly query = <Row extends SqlRow>(
    text: string,
    parameters?: readonly SqlParameter[],
    options?: StatementOptions,
  ): Promise<readonly Row[]> =>
    this.#inTurn(async () => (await this.#run(text, parameters, options)) as unknown as readonly Row[]);

  #inTurn<Result>(send: () => Promise<Result>): Promise<Result> {
    const before = this.#open++ === 0 ? undefined : this.#last;
    const turn = before === undefined ? this.#send(send) : before.then(() => this.#send(send));
    const done = (): void => {
      this.#open -= 1;
    };
    this.#last = turn.then(done, done);
    return turn;
  }

  #send<Result>(send: () => Promise<Result>): Promise<Result> {
    if (!this.#isOver) return send();
    // The connection may be another transaction's by now, and the statement would become part of that.
    return Promise.reject(new ConnectionUnavailableError('The transaction is over, nothing was sent.'));
  }

  /** Whether the body has sent something that it has not waited for: see {@link settled}. */
  get isBusy(): boolean {
    return this.#open > 0;
  }

  /** Waits for what the body has sent and not waited for, so that it is part of the transaction. */
  async settled(): Promise<void> {
    while (this.#open > 0) await this.#last;
  }

  /** Refuses whatever is sent, or has not had its turn. */
  end(): void {
    this.#isOver = true;
  }
}
