import { QueueNotFoundError, WorkflowDeduplicatedError } from '../errors/queue-errors.js';
import type { HoldfastError } from '../errors/holdfast-error.js';
import type { EnqueueRefusal } from '../store/store.js';

/** Why a workflow was not enqueued, as the caller is told. */
export function enqueueRefusalError(refusal: EnqueueRefusal): HoldfastError {
  switch (refusal.kind) {
    case 'no-queue':
      return new QueueNotFoundError(
        `There is no queue "${refusal.queue}". Declare it in "queues" of launch, or define it with queues.define.`,
      );
    case 'deduplicated':
      return new WorkflowDeduplicatedError(
        `Workflow "${refusal.holder}" holds the deduplication ID. To get its handle instead, say onConflict: 'attach'.`,
        { workflowId: refusal.holder },
      );
  }
}
