import { WorkflowNotFoundError } from '../errors/admin-errors.js';

export function notFound(workflowId: string): WorkflowNotFoundError {
  return new WorkflowNotFoundError(
    `There is no workflow "${workflowId}": it was never started, or it has been deleted.`,
  );
}
