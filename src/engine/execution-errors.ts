import { DatabaseError } from '../errors/database-errors.js';
import { codeOf } from '../errors/error-code.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import {
  OwnershipLostError,
  StepNondeterminismError,
  WorkflowEndedError,
  WorkflowTimeoutError,
} from '../errors/workflow-errors.js';
import type { RecordedStep, StepKind } from '../store/store.js';
import type { BlockCode } from './attention-codes.js';
import type { RunningExecution } from './execution-host.js';
import { asError } from './thrown.js';

export { asError };

// What an execution says of why it ends, each in one place.

export const INPUT_UNREADABLE = 'The stored input cannot be decoded: see the error VALUE_UNREADABLE.';

export function ownershipLost(workflowId: string, reason: string): OwnershipLostError {
  return new OwnershipLostError(
    `This execution of workflow "${workflowId}" no longer owns it (${reason}). Let this error pass.`,
  );
}

export function hasReturned(): WorkflowEndedError {
  return new WorkflowEndedError('The workflow has returned: its steps can no longer be called.');
}

export function continuesAsNew(): WorkflowEndedError {
  return new WorkflowEndedError('The workflow continues as new: this run of it is over.');
}

export function rollsBack(): WorkflowEndedError {
  return new WorkflowEndedError('The workflow is being rolled back: this run of it is over.');
}

export function timedOut(workflowId: string): WorkflowTimeoutError {
  return new WorkflowTimeoutError(`Workflow "${workflowId}" did not end before its deadline.`);
}

/** A number is recorded already, by a write that is not this execution's. */
export function recordedOtherwise(workflowId: string, found: string): StepNondeterminismError {
  return new StepNondeterminismError(
    `Workflow "${workflowId}" has recorded ${found} already where it now wants to record another result.`,
  );
}

/** The code does not take the path that is recorded. */
export function otherPath(workflowId: string, recorded: RecordedStep, found: string): StepNondeterminismError {
  return new StepNondeterminismError(
    `Workflow "${workflowId}" has recorded ${recorded.kind} "${recorded.name}" as number ${String(recorded.seq)}, but ${found}. ` +
      'Deploy code that takes the recorded path and resume it, or rewind or fork it.',
  );
}

/** The code does not come to the compensations that are planned. */
export function otherRollback(
  workflowId: string,
  planned: { readonly seq: number; readonly name: string },
  found: string,
): StepNondeterminismError {
  return new StepNondeterminismError(
    `Workflow "${workflowId}" has planned the compensation of "${planned.name}" as number ${String(planned.seq)}, but ${found}. ` +
      'Deploy code that takes the recorded path and resume it, or rewind it to before the rollback.',
  );
}

/** What a call has to be to be the recorded one; undefined when it is. */
export function otherCall(
  recorded: RecordedStep,
  kind: StepKind,
  name: string,
  childId: string | undefined,
): string | undefined {
  const isOther = childId !== undefined && recorded.childId !== childId;
  if (recorded.kind === kind && recorded.name === name && !isOther) return undefined;
  return `the code calls ${kind} "${name}"${isOther ? ` of "${childId}"` : ''} there`;
}

/** What came of a call cannot be turned into something to record: attention, detail and error of the block. */
export function unrecordable(error: unknown): [attention: BlockCode, detail: string, error: Error] {
  const isCodec = error instanceof PayloadCodecError;
  return [
    isCodec ? error.code : 'ENGINE_FAILURE',
    isCodec
      ? `${error.message} Mend it, and resume: what could not be recorded is done again.`
      : 'An unexpected error stopped the execution. Resume it to try again.',
    asError(error),
  ];
}

/** Detail of a block: nobody can say what became of a transaction in another database. */
export const NOT_DECIDED = 'What became of a transaction could not be found out in its data source.';

/** Tells of a failure that the execution has met and that ends nothing. */
export function warn(execution: Pick<RunningExecution, 'host' | 'workflowId'>, message: string, error: unknown): void {
  execution.host.logger.warn(message, { workflowId: execution.workflowId, code: codeOf(error) });
}

/** The workflow will be given back and tried again, perhaps in vain each time: without a word nobody would learn why. */
export function tellOfRefusal(execution: Pick<RunningExecution, 'host' | 'workflowId'>, error: unknown): void {
  if (!(error instanceof DatabaseError)) return;
  const { code, sqlState } = error;
  execution.host.logger.error(
    'The database refuses what an execution asks: the workflow is given back, to be tried again.',
    {
      workflowId: execution.workflowId,
      code,
      sqlState,
    },
  );
}
