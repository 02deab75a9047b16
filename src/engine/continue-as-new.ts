import { InvalidArgumentError } from '../errors/admin-errors.js';
import { StepUnderWayError } from '../errors/step-errors.js';
import type { WorkflowDefinition } from './definitions.js';
import { orRecordFailure } from './durable-calls.js';
import type { RunningExecution } from './execution-host.js';
import { prepareStart } from './prepare-start.js';

function stepUnderWay(): StepUnderWayError {
  return new StepUnderWayError(
    'A step that must not be repeated blindly is under way: its intent would be lost with the history. Await it before continueAsNew.',
  );
}

/**
 * Ends the run and has the workflow begin anew with other arguments. It is a numbered call, since it can fail for its arguments:
 * that is recorded, so that code which catches the error goes on. When it succeeds, no history is left to find it in.
 */
export function continueAsNew(
  execution: RunningExecution,
  self: WorkflowDefinition | undefined,
  args: readonly unknown[],
): Promise<never> {
  const { definition, workflowId, host } = execution;
  if (self !== definition) {
    throw new InvalidArgumentError(`continueAsNew takes the workflow that is running, which is "${definition.name}".`);
  }
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('continue', definition.name);
    if (recorded !== undefined) await execution.replayed(recorded);
    const replaying = execution.replayOver();
    if (replaying !== undefined) await replaying;
    const step = {
      seq,
      name: definition.name,
      kind: 'continue',
      childId: null,
      startedAt: execution.runtime.now(),
    } as const;
    const { input } = await orRecordFailure(execution, step, async () => {
      if (execution.leavesUnknown) throw stepUnderWay();
      return prepareStart(definition, args, {}, workflowId, host.serializer);
    });
    await execution.continueWith(input);
    // The end of the execution has rejected this call.
    return new Promise<never>(() => undefined);
  });
}
