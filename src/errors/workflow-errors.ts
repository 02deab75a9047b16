import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** The workflow was cancelled. */
export class WorkflowCancelledError extends HoldfastError {
  override readonly code = 'WORKFLOW_CANCELLED';
  override readonly name = 'WorkflowCancelledError';
}

/** The workflow did not end before its deadline. */
export class WorkflowTimeoutError extends HoldfastError {
  override readonly code = 'WORKFLOW_TIMEOUT';
  override readonly name = 'WorkflowTimeoutError';
}

/** The workflow was claimed as often as it may be, and never ended: it is a dead letter until somebody resumes it. */
export class MaxAttemptsExceededError extends HoldfastError {
  override readonly code = 'MAX_ATTEMPTS_EXCEEDED';
  override readonly name = 'MaxAttemptsExceededError';
}

/** The workflow's executions kept meeting other writers and made no progress. */
export class WorkflowStuckError extends HoldfastError {
  override readonly code = 'WORKFLOW_STUCK';
  override readonly name = 'WorkflowStuckError';
}

/**
 * Thrown inside a workflow whose execution may no longer write: it was cancelled, recovered elsewhere, given back, or deleted.
 * Let it pass: catching it changes nothing, since every later step of this execution throws it again.
 */
export class OwnershipLostError extends HoldfastError {
  override readonly code = 'OWNERSHIP_LOST';
  override readonly name = 'OwnershipLostError';
}

/** Thrown by a step that is called by a workflow which has already returned. */
export class WorkflowEndedError extends HoldfastError {
  override readonly code = 'WORKFLOW_ENDED';
  override readonly name = 'WorkflowEndedError';
}

/** The workflow's code took another path than the one that is recorded. The workflow is `BLOCKED` until a person decides. */
export class StepNondeterminismError extends HoldfastError {
  override readonly code = 'STEP_NONDETERMINISM';
  override readonly name = 'StepNondeterminismError';
}

/** The workflow ID belongs to a workflow of another name. */
export class WorkflowIdConflictError extends HoldfastError {
  override readonly code = 'WORKFLOW_ID_CONFLICT';
  override readonly name = 'WorkflowIdConflictError';
}

/** The database refuses what an execution wanted to record. Nothing of it was written. */
export class WriteRefusedError extends HoldfastError {
  override readonly code = 'WRITE_REFUSED';
  override readonly name = 'WriteRefusedError';
}

/** An input or output does not fit its schema. */
export class SchemaViolationError extends HoldfastError {
  override readonly code = 'SCHEMA_VIOLATION';
  override readonly name = 'SchemaViolationError';
  /** What is wrong, each with its path inside the value. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(
    message: string,
    issues: readonly { readonly path: string; readonly message: string }[],
    options?: HoldfastErrorOptions,
  ) {
    super(message, options);
    this.issues = issues;
  }
}

/** A workflow made more durable calls than one history holds. */
export class HistoryLimitError extends HoldfastError {
  override readonly code = 'HISTORY_LIMIT';
  override readonly name = 'HistoryLimitError';
}
