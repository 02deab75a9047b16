/** PostgreSQL's isolation levels. */
export type TransactionIsolation = 'read committed' | 'repeatable read' | 'serializable';

/** How a transaction of a data source is to begin. */
export interface TransactionModes {
  readonly isolation: TransactionIsolation;
  readonly readOnly: boolean;
}

/**
 * How to run transactions with a library that owns its connections: an ORM or a query builder. `docs/transactions.md` has one for
 * Drizzle, Kysely, Knex, TypeORM and Prisma each.
 */
export interface DataSourceAdapter<Client> {
  /** Runs `body` in one transaction: commits when it returns, rolls back when it throws, and then throws what it threw. */
  transaction<Result>(body: (client: Client) => Promise<Result>, modes: TransactionModes): Promise<Result>;
  /**
   * Runs one statement in the open transaction and returns its rows. The statement has one placeholder, `$1`, which occurs once
   * and stands for `parameter`; its row has one column, `reply`, a text.
   */
  query(client: Client, statement: string, parameter: string): Promise<readonly unknown[]>;
}

/** A pool of `pg`, by what is needed of it. */
export interface CallersPool<Client> {
  connect(): Promise<Client>;
  /** Pools have this form, too; named, so that the first one is looked at to find out what `Client` is. */
  connect(callback: never): unknown;
  readonly totalCount: number;
}

/** An `sql` of `postgres`, by what is needed of it. */
export interface CallersSql {
  readonly options: object;
  readonly begin: (...args: never[]) => unknown;
  readonly unsafe: (...args: never[]) => unknown;
}

/** What a data source can be made of. */
export type DataSourceTarget<Client> = CallersPool<Client> | CallersSql | DataSourceAdapter<Client>;

/** A place where transactions can run, made by `defineDataSource`. `Client` is what its transactions give to their bodies. */
export interface DataSource<Client = unknown> {
  readonly kind: 'data-source';
  /** Its name in messages. */
  readonly name: string;
  readonly target: DataSourceTarget<Client>;
  /** Schema of the table of completions, where the data source is another database than Holdfast's. */
  readonly completionSchema: string;
}

/** Schema of the table of completions, unless told otherwise. */
export const DEFAULT_COMPLETION_SCHEMA = 'holdfast_completion';
