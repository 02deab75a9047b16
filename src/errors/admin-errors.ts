import { HoldfastError } from './holdfast-error.js';

/** There is no workflow with this ID: it never was, or it has been deleted. */
export class WorkflowNotFoundError extends HoldfastError {
  override readonly code = 'WORKFLOW_NOT_FOUND';
  override readonly name = 'WorkflowNotFoundError';
}

/** An argument or option is not of the documented form. Nothing was written. */
export class InvalidArgumentError extends HoldfastError {
  override readonly code = 'INVALID_ARGUMENT';
  override readonly name = 'InvalidArgumentError';
}

/**
 * The workflow's state does not allow this control operation, and nothing was written. The message says which operation
 * fits; `docs/admin.md` has the whole table.
 */
export class WorkflowStateError extends HoldfastError {
  override readonly code = 'WORKFLOW_STATE';
  override readonly name = 'WorkflowStateError';
  /** The status that was found, for example `SUCCESS`. */
  readonly status: string;
  /** The operation that was refused, for example `resume`. */
  readonly verb: string;

  constructor(message: string, details: { readonly status: string; readonly verb: string }) {
    super(message);
    this.status = details.status;
    this.verb = details.verb;
  }
}

/** The ID that a fork was to have belongs to another workflow. Nothing was written. */
export class WorkflowExistsError extends HoldfastError {
  override readonly code = 'WORKFLOW_EXISTS';
  override readonly name = 'WorkflowExistsError';
}

/** The step has a result that the workflow has gone on from: it never changes. Nothing was written. */
export class StepRecordedError extends HoldfastError {
  override readonly code = 'STEP_RECORDED';
  override readonly name = 'StepRecordedError';
}

/** The workflow has not recorded this step. Nothing was written. */
export class StepNotFoundError extends HoldfastError {
  override readonly code = 'STEP_NOT_FOUND';
  override readonly name = 'StepNotFoundError';
}
