import type { DataSource, TransactionIsolation } from '../api/data-source.js';
import type { TransactionOptions } from '../api/transaction.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { RegistrationError } from '../errors/usage-errors.js';
import { isDataSource } from './data-source.js';
import { NO_OPTIONS, stepDefinition, type AnyFunction, type StepDefinition } from './definitions.js';
import { parseDuration } from './duration.js';
import { checkIsOptions } from './known-options.js';

/** A step whose body runs in the database transaction of its own checkpoint. */
export interface TransactionDefinition extends StepDefinition {
  readonly kind: 'transaction';
  readonly settings: TransactionSettings;
}

export interface TransactionSettings {
  readonly isolation: TransactionIsolation;
  readonly readOnly: boolean;
  /** Milliseconds; null: the executor's default. */
  readonly idleTimeoutMs: number | null;
  /** Undefined: Holdfast's own connection. */
  readonly dataSource: DataSource | undefined;
}

const ISOLATIONS: ReadonlySet<string> = new Set<TransactionIsolation>([
  'read committed',
  'repeatable read',
  'serializable',
]);

const DEFAULT_SETTINGS: TransactionSettings = {
  isolation: 'read committed',
  readOnly: false,
  idleTimeoutMs: null,
  dataSource: undefined,
};

/** @throws RegistrationError, InvalidArgumentError */
export function transactionDefinition(
  name: string,
  body: AnyFunction,
  options: Omit<TransactionOptions, 'name'>,
): TransactionDefinition {
  if (options === NO_OPTIONS) {
    return { ...stepDefinition(name, body, NO_OPTIONS), kind: 'transaction', settings: DEFAULT_SETTINGS };
  }
  checkIsOptions(options, 'A transaction');
  refuseMisfits(options);
  const { isolation = 'read committed', readOnly = false, idleTimeout, dataSource, ...stepOptions } = options;
  if (!ISOLATIONS.has(isolation)) {
    throw new InvalidArgumentError(
      `The option "isolation" is one of: ${[...ISOLATIONS].map((level) => `"${level}"`).join(', ')}.`,
    );
  }
  if (typeof readOnly !== 'boolean') throw new InvalidArgumentError('The option "readOnly" is true or false.');
  if (dataSource !== undefined && !isDataSource(dataSource)) {
    throw new InvalidArgumentError('The option "dataSource" takes what defineDataSource returned.');
  }
  const settings: TransactionSettings = {
    isolation,
    readOnly,
    idleTimeoutMs: idleTimeout === undefined ? null : checkIdleTimeout(parseDuration(idleTimeout, 'idleTimeout')),
    dataSource,
  };
  return { ...stepDefinition(name, body, stepOptions), kind: 'transaction', settings };
}

/** What belongs to steps whose outcome can be unknown: that of a transaction never is. */
function refuseMisfits(options: object): void {
  for (const misfit of ['reconcile', 'atMostOnce']) {
    if (misfit in options) {
      throw new RegistrationError(
        `A transaction takes no "${misfit}": it takes effect exactly once, and what became of it is always found out.`,
      );
    }
  }
}

function checkIdleTimeout(ms: number): number {
  if (ms >= 1) return ms;
  throw new InvalidArgumentError('idleTimeout must be at least 1 ms: zero would switch the limit off.');
}
