import type { TransactionLookup } from '../store/transaction-store.js';
import type { StepDefinition } from './definitions.js';
import type { RunningExecution } from './execution-host.js';
import type { TransactionDefinition } from './transaction-definition.js';

/** Whether this is a transaction that can have committed without a record of it, since its data source is another database. */
export function commitsElsewhere(
  { host }: RunningExecution,
  definition: StepDefinition,
): definition is TransactionDefinition {
  return definition.kind === 'transaction' && host.transactions.commitsElsewhere(settingsOf(definition));
}

/** For who is to undo a call that has no record: whether it has committed. No earlier execution commits it after that. */
export async function lookUp(
  execution: RunningExecution,
  definition: TransactionDefinition,
  seq: number,
): Promise<TransactionLookup> {
  const { ownership, host, signal } = execution;
  const { name } = definition;
  const found = await execution.write(
    host.transactions.lookUp({ ownership, seq, name, signal, ...settingsOf(definition) }),
  );
  execution.assertRunning();
  return found;
}

function settingsOf(definition: StepDefinition) {
  const { settings } = definition as TransactionDefinition;
  return { dataSource: settings.dataSource, modes: settings };
}
