import {
  DEFAULT_COMPLETION_SCHEMA,
  type CallersPool,
  type CallersSql,
  type DataSource,
  type DataSourceAdapter,
  type DataSourceTarget,
} from '../api/data-source.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { checkText } from './check-text.js';
import { checkKnownOptions } from './known-options.js';

const LONGEST_NAME_BYTES = 255;

export interface DataSourceOptions {
  /**
   * Schema of the table of completions, where the data source turns out to be another database than Holdfast's,
   * `^[a-z_][a-z0-9_]{0,47}$`. Default `holdfast_completion`.
   */
  readonly completionSchema?: string;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof DataSourceOptions>(['completionSchema']);

/**
 * Names a place where transactions can run besides Holdfast's own connection: another pool, or the connections of an ORM or query
 * builder. Give it to `launch` as one of `dataSources`, and to transactions as `dataSource`. Whether it is Holdfast's
 * database or another one is found out at launch, and makes no difference to what is promised.
 *
 * @param name 1 to 255 bytes, for messages.
 * @param target A `Pool` of `pg`, an `sql` of `postgres`, or an adapter. With `postgres`, its client is to be named:
 *   `defineDataSource<TransactionSql>('app', sql)`.
 * @throws InvalidArgumentError
 */
export function defineDataSource<Client>(
  name: string,
  target: DataSourceTarget<Client>,
  options: DataSourceOptions = {},
): DataSource<Client> {
  checkText(name, LONGEST_NAME_BYTES, 'The name of a data source');
  checkKnownOptions(options, OPTIONS, 'A data source');
  if (!isAdapter(target) && !isPool(target) && !isSql(target)) {
    throw new InvalidArgumentError(
      'A data source is a Pool of pg, an sql of postgres, or an adapter: { transaction, query }.',
    );
  }
  return Object.freeze({
    kind: 'data-source',
    name,
    target,
    completionSchema: options.completionSchema ?? DEFAULT_COMPLETION_SCHEMA,
  });
}

export function isDataSource(value: unknown): value is DataSource {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'data-source';
}

/** By shape, since the application may have another copy of a library. */
export function isAdapter<Client>(target: DataSourceTarget<Client>): target is DataSourceAdapter<Client> {
  const { transaction, query } = target as Partial<DataSourceAdapter<Client>>;
  return typeof transaction === 'function' && typeof query === 'function';
}

function isPool(target: object): boolean {
  const { connect, totalCount } = target as Partial<CallersPool<unknown>>;
  return typeof connect === 'function' && typeof totalCount === 'number';
}

function isSql(target: object): boolean {
  const { begin, unsafe } = target as Partial<CallersSql>;
  return typeof target === 'function' && typeof begin === 'function' && typeof unsafe === 'function';
}
