import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** There is no queue of this name. Nothing was written. */
export class QueueNotFoundError extends HoldfastError {
  override readonly code = 'QUEUE_NOT_FOUND';
  override readonly name = 'QueueNotFoundError';
}

/** Workflows that have not ended are in the queue, or somebody is just putting one there. It was not deleted. */
export class QueueNotEmptyError extends HoldfastError {
  override readonly code = 'QUEUE_NOT_EMPTY';
  override readonly name = 'QueueNotEmptyError';
  /** Workflows in it; 0 when somebody is just enqueuing. */
  readonly workflows: number;

  constructor(message: string, details: { readonly workflows: number }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.workflows = details.workflows;
  }
}

/** Another workflow holds the deduplication ID. Nothing was written. */
export class WorkflowDeduplicatedError extends HoldfastError {
  override readonly code = 'WORKFLOW_DEDUPLICATED';
  override readonly name = 'WorkflowDeduplicatedError';
  /** The workflow that holds the ID. */
  readonly workflowId: string;

  constructor(message: string, details: { readonly workflowId: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.workflowId = details.workflowId;
  }
}
