import type { WorkflowContext } from '../api/context.js';
import type { Ownership } from '../store/store.js';

/** What `workflow()` shows of an execution. */
export function workflowContext(
  execution: {
    readonly workflowId: string;
    readonly ownership: Ownership;
    readonly attempt: number;
    readonly signal: AbortSignal;
  },
  schedule: WorkflowContext['schedule'],
): WorkflowContext {
  return {
    workflowId: execution.workflowId,
    epoch: execution.ownership.epoch,
    attempt: execution.attempt,
    schedule,
    // Made when somebody asks.
    get signal() {
      return execution.signal;
    },
  };
}
