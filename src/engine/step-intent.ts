import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { RecordedStep } from '../store/store.js';
import type { StepDefinition } from './definitions.js';
import type { RunningExecution } from './execution-host.js';
import type { OpenCall } from './open-calls.js';

// Before the body of a step that must not be repeated blindly, its intent is recorded. An intent without a result then says:
// the body may have run, and nobody knows what came of it.

/**
 * Records that the body of a step is about to begin. Checked like every write, so that of two executions one alone gets this
 * far; a repetition after a lost reply is recognised by its nonce, and the body may begin.
 *
 * @throws OwnershipLostError, or why else the body must not begin.
 */
export async function recordStepIntent(
  execution: RunningExecution,
  open: OpenCall,
  { name, kind }: Pick<StepDefinition, 'name' | 'kind'>,
  seq: number,
): Promise<void> {
  // Not while the execution is being unloaded, which would leave an intent of a body that never began.
  const permission = execution.mayRunBody();
  if (permission !== undefined) await permission;
  open.intended = seq;
  const { store } = execution.host;
  const answer = await execution.write(store.recordIntent(execution.ownership, { seq, name, kind }));
  switch (answer.kind) {
    case 'written':
      await execution.progress();
      return;
    case 'refused': {
      const error = new WriteRefusedError(`The database refuses the intent of step "${name}".`, {
        cause: answer.error,
      });
      execution.block('WRITE_REFUSED', error.message, error);
      throw error;
    }
    case 'child-name-taken':
      throw new TypeError('Not an answer to this intent.');
    default:
      execution.denied(answer);
  }
}

/**
 * What an intent without a result means to the step's code of today.
 *
 * - `run-again`: the body may be run again, like that of any step: it has neither `reconcile` nor `atMostOnce`.
 * - `unknown`: not before somebody has found out. Also where the code asks for no intents: whoever recorded one did.
 */
export function meaningOf(
  { attempts }: Pick<RecordedStep, 'attempts'>,
  { needsIntent, reconcile, atMostOnce }: Pick<StepDefinition, 'needsIntent' | 'reconcile' | 'atMostOnce'>,
): 'run-again' | 'unknown' {
  const isGuarded = reconcile !== undefined || atMostOnce || !needsIntent;
  return isGuarded || attempts > 0 ? 'unknown' : 'run-again';
}
