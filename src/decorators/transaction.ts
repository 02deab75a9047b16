import type { TransactionOptions } from '../api/transaction.js';
import { attachDefinition, NO_OPTIONS } from '../engine/definitions.js';
import { runTransaction as runDurably } from '../engine/run-transaction.js';
import { currentScope, durableExecution } from '../engine/scope.js';
import { assertCanJoin } from '../engine/transaction-context.js';
import { transactionDefinition, type TransactionDefinition } from '../engine/transaction-definition.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { checkIsCalled, methodDecorator, type AsyncMethodDecorator } from './method-decorator.js';
import { methodCheck, namesMethods } from './method-options.js';

/**
 * Makes a method a transaction: called from a workflow, its body runs in one database transaction together with the record of its
 * result, so that it takes effect exactly once. The body gets the open transaction with `transaction()`.
 *
 * The body may run several times, each time after everything before was rolled back: what it does elsewhere than in its transaction
 * is not undone. Called inside another transaction's body, it is a part of that; called outside workflows or inside a step, it is a
 * plain call, in which `transaction()` throws.
 *
 * @example
 * class Bank {
 *   @Transaction({ isolation: 'serializable' })
 *   static async transfer(from: string, to: string, cents: number): Promise<void> {
 *     const { client } = transaction<PoolClient>();
 *     await client.query('UPDATE account SET cents = cents - $2 WHERE id = $1', [from, cents]);
 *     await client.query('UPDATE account SET cents = cents + $2 WHERE id = $1', [to, cents]);
 *   }
 * }
 *
 * @throws InvalidArgumentError, RegistrationError when the class is evaluated, for options that are not of the documented form.
 */
export function Transaction(options: TransactionOptions = NO_OPTIONS): AsyncMethodDecorator {
  checkIsCalled(options, 'Transaction');
  return methodDecorator(
    'Transaction',
    options.name,
    (name, body) => {
      const definition = transactionDefinition(name, body, options);
      const wrapper = function (this: unknown, ...args: unknown[]): unknown {
        return callTransaction(definition, this, args);
      };
      attachDefinition(wrapper, definition);
      return wrapper;
    },
    methodCheck({ compensate: options.compensate }),
  );
}

/**
 * Runs a function as a transaction of the workflow that calls this.
 *
 * @param name Name of the transaction in the record; the same at every run.
 * @example
 * await runTransaction('reserve', async () => {
 *   await transaction<PoolClient>().client.query('UPDATE stock SET left = left - 1 WHERE item = $1', [item]);
 * });
 */
export function runTransaction<Result>(
  name: string,
  body: () => Promise<Result>,
  options: Omit<TransactionOptions, 'name'> = NO_OPTIONS,
): Promise<Result> {
  if (namesMethods({ compensate: options.compensate })) {
    throw new InvalidArgumentError(
      'runTransaction takes "compensate" as a function: it knows no class to look for a method in.',
    );
  }
  return callTransaction(transactionDefinition(name, body, options), undefined, []) as Promise<Result>;
}

function callTransaction(definition: TransactionDefinition, self: unknown, args: unknown[]): unknown {
  const execution = durableExecution();
  if (execution !== undefined) return execution.call(() => runDurably(execution, definition, self, args));
  const outer = currentScope()?.transaction;
  if (outer !== undefined) assertCanJoin(outer, definition);
  return definition.body.apply(self, args);
}
