import type { StepContext } from './context.js';
import type { DataSource, TransactionIsolation } from './data-source.js';
import type { Duration } from './duration.js';
import type { StepOptions } from './step-options.js';

/** What `@Transaction` and `runTransaction` take: what a step takes, `reconcile` and `atMostOnce` excepted, and this. */
export interface TransactionOptions extends Pick<StepOptions, 'name' | 'retries' | 'timeout' | 'compensate'> {
  /** Default `read committed`, whatever the server's default is. */
  readonly isolation?: TransactionIsolation;
  /**
   * The body may not write, and its result is recorded after its transaction, as that of a step is. Default false.
   */
  readonly readOnly?: boolean;
  /**
   * How long the transaction may be idle between two statements before the server ends it, so that a process that is frozen in it
   * does not keep its locks. Default: two thirds of the executor's lease. At least 1 ms.
   */
  readonly idleTimeout?: Duration;
  /** Where the transaction runs, one of `dataSources` of `launch`. Default: Holdfast's own database connection. */
  readonly dataSource?: DataSource;
}

/** What the body of a transaction can know about its own run. */
export interface TransactionContext<Client> extends StepContext {
  /**
   * The open transaction: a client of `pg`, what `sql.begin` of `postgres` passes, or what the data source's library passes. To be
   * used until the body has settled, and not for COMMIT or ROLLBACK.
   */
  readonly client: Client;
}
