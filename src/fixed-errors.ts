import type { Serializer } from './engine/serializer.js';
import { MaxAttemptsExceededError, WorkflowCancelledError, WorkflowStuckError } from './errors/workflow-errors.js';

/** Errors that the database records by itself, encoded beforehand. */
export interface FixedErrors {
  readonly deadLetter: string;
  readonly stuck: string;
  readonly stalled: string;
  readonly cancelled: string;
}

export async function encodeFixedErrors(serializer: Serializer): Promise<FixedErrors> {
  return {
    deadLetter: await serializer.encodeError(
      withoutStack(
        new MaxAttemptsExceededError(
          'The workflow was claimed as often as it may be and never ended. Find out why, then resume it for a fresh budget.',
        ),
      ),
    ),
    stuck: await serializer.encodeError(
      withoutStack(
        new WorkflowStuckError('Other writers kept changing the workflow: its executions made no progress.'),
      ),
    ),
    stalled: await serializer.encodeError(
      withoutStack(new WorkflowStuckError('No durable call of the workflow ended within its stuckAfter.')),
    ),
    cancelled: await serializer.encodeError(withoutStack(new WorkflowCancelledError('The workflow was cancelled.'))),
  };
}

/** Where it was made says nothing about where it happened. */
function withoutStack(error: Error): Error {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}
