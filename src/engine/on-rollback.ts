import type { RollbackOptions } from '../api/compensation.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { compensationBody } from './compensation-body.js';
import { compensationPolicy } from './compensation-policy.js';
import { checkText } from './check-text.js';
import { checkKnownOptions } from './known-options.js';
import { requireDurable } from './scope.js';

const OPTIONS: ReadonlySet<string> = new Set<keyof RollbackOptions>(['name', 'retries', 'timeout']);
const LONGEST_NAME_BYTES = 255;
const DEFAULT_NAME = 'onRollback';

/**
 * Registers a function that is run when this workflow fails, runs out of time, or is cancelled with `{ compensate: true }`: as a durable
 * step of its own, after the compensations of everything that the workflow does later, and before those of what it did before.
 *
 * Call it before what it undoes: it is run also when the workflow ends in between, so it has to bear that nothing has happened. Nothing
 * is recorded by the call itself: a replay comes by and registers the function again.
 *
 * @example
 * onRollback(() => files.remove(path));
 * await runStep('write', () => files.write(path, text));
 *
 * @throws InvalidArgumentError, OutsideWorkflowError, HistoryLimitError
 */
export function onRollback(run: () => Promise<unknown>, options: RollbackOptions = {}): void {
  if (typeof run !== 'function') throw new InvalidArgumentError('onRollback takes the function to be run first.');
  checkKnownOptions(options, OPTIONS, 'onRollback');
  const execution = requireDurable('onRollback');
  const { name = DEFAULT_NAME, ...policy } = options;
  const parsed = compensationPolicy({ run, ...policy });
  if (parsed === undefined) return;
  execution.onRollback(
    compensationBody(parsed, checkText(name, LONGEST_NAME_BYTES, 'The name of a rollback function'), undefined),
  );
}
