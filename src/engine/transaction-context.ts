import type { DataSource } from '../api/data-source.js';
import type { TransactionContext } from '../api/transaction.js';
import { InsideTransactionError } from '../errors/transaction-errors.js';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import { currentScope, type RunningTransaction } from './scope.js';
import type { TransactionDefinition } from './transaction-definition.js';

/**
 * The transaction whose body is running: its client, and what `step()` tells. With a data source, the client has the type that
 * this one gives; for Holdfast's own connection, name it: `transaction<PoolClient>()`.
 *
 * @throws OutsideWorkflowError outside the body of a transaction that a workflow has called.
 * @throws InsideTransactionError when the transaction is one of another data source.
 */
export function transaction<Client>(dataSource?: DataSource<Client>): TransactionContext<Client> {
  const scope = currentScope();
  const { step, transaction: open } = scope ?? {};
  if (step === undefined || open === undefined) {
    throw new OutsideWorkflowError('transaction() works in the body of a transaction that a workflow has called.');
  }
  if (dataSource !== undefined && open.settings.dataSource !== dataSource) {
    throw new InsideTransactionError(
      `This transaction is not one of data source "${dataSource.name}" but of ${nameOf(open)}.`,
    );
  }
  return new Context<Client>(step, open.client as Client);
}

/** What is read of the step is asked when it is read: its key and its signal are made for those who want them. */
class Context<Client> implements TransactionContext<Client> {
  readonly #step: NonNullable<NonNullable<ReturnType<typeof currentScope>>['step']>;
  readonly client: Client;

  constructor(step: NonNullable<NonNullable<ReturnType<typeof currentScope>>['step']>, client: Client) {
    this.#step = step;
    this.client = client;
  }

  get workflowId(): string {
    return this.#step.workflowId;
  }

  get seq(): number {
    return this.#step.seq;
  }

  get name(): string {
    return this.#step.name;
  }

  get attempt(): number {
    return this.#step.attempt;
  }

  get idempotencyKey(): string {
    return this.#step.idempotencyKey;
  }

  get signal(): AbortSignal {
    return this.#step.signal;
  }
}

/**
 * A transaction called in the body of another one is a part of it.
 * @throws InsideTransactionError when it asks for something else than what it would be a part of.
 */
export function assertCanJoin(open: RunningTransaction, { name, settings }: TransactionDefinition): void {
  const { dataSource, isolation, readOnly } = open.settings;
  if (settings.dataSource !== dataSource) {
    throw new InsideTransactionError(
      `Transaction "${name}" was called inside one of ${nameOf(open)}, and is of another data source: call it from the workflow.`,
    );
  }
  if (ORDER.indexOf(settings.isolation) > ORDER.indexOf(isolation) || (readOnly && !settings.readOnly)) {
    throw new InsideTransactionError(
      `Transaction "${name}" was called inside another one, of which it becomes a part, and that one is "${isolation}"` +
        `${readOnly ? ', read-only' : ''}: call it from the workflow, or let the outer one ask for what it needs.`,
    );
  }
}

/** From the weakest. */
const ORDER = ['read committed', 'repeatable read', 'serializable'];

function nameOf({ settings: { dataSource } }: RunningTransaction): string {
  return dataSource === undefined ? 'Holdfast’s own connection' : `"${dataSource.name}"`;
}
