import { StepNondeterminismError } from '../errors/workflow-errors.js';
import type { RecordedStep } from '../store/store.js';

/** The code does not go where the record does. */
export function otherPath(workflowId: string, recorded: RecordedStep, found: string): StepNondeterminismError {
  return new StepNondeterminismError(
    `Workflow "${workflowId}" has recorded ${recorded.kind} "${recorded.name}" as number ${String(recorded.seq)}, but ${found}. ` +
      'Deploy code that takes the recorded path and resume it, or rewind or fork it.',
  );
}
