import type { Driver } from '../../../drivers/driver.js';
import { DatabaseError } from '../../../errors/database-errors.js';
import { LentClient } from './lent-client.js';
import { MARKER, replyOf, type SourceOptions, type SourceTransaction, type TransactionSource } from './source.js';

/** Connections that transactions leave to everything else: heartbeats, claims and the two lanes of the writer. */
const RESERVED_CONNECTIONS = 3;

const PREPARED = { prepare: 'holdfast_transaction' };

/** Transactions on connections of a driver. */
export class DriverSource implements TransactionSource {
  readonly slots: TransactionSource['slots'];
  readonly #driver: Driver;

  /** `isShared`: whether Holdfast's own statements use its connections, too. */
  constructor(driver: Driver, { isShared }: { readonly isShared: boolean }) {
    this.#driver = driver;
    this.slots = isShared
      ? { pool: driver, count: Math.max(1, driver.maxConnections - RESERVED_CONNECTIONS) }
      : undefined;
  }

  run<Result>(options: SourceOptions, work: (open: SourceTransaction) => Promise<Result>): Promise<Result> {
    const { isolation, readOnly, idleTimeoutMs } = options;
    return this.#driver.transaction(
      (transaction) => {
        const { commitWith } = transaction;
        const lent = new LentClient(transaction.client);
        return work({
          client: lent.client,
          takeBack: () => {
            lent.takeBack();
          },
          abandon: (cause) => {
            transaction.destroy(cause);
          },
          reply: async (statement, parameter) => replyOf(await transaction.query(statement, [parameter], PREPARED)),
          commitWith: commitWith && ((statement, parameters) => commitWith(statement, parameters, PREPARED)),
          isAlive: () =>
            transaction.query('SELECT 1').then(
              () => true,
              // In a transaction that has failed the server answers so, too.
              (error: unknown) => error instanceof DatabaseError,
            ),
        });
      },
      { isolation, access: readOnly ? 'read only' : 'read write', idleTimeoutMs, marker: MARKER },
    );
  }
}
