import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** There is no queue of this name. Nothing was written. */
export class QueueNotFoundError extends HoldfastError {
  override readonly code = 'QUEUE_NOT_FOUND';
  override readonly name = 'QueueNotFoundError';
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
