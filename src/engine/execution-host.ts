import type { Logger } from '../api/logger.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import type { StartOptions } from '../api/workflow-options.js';
import type { Ownership, WorkflowStart, WorkflowStore } from '../store/store.js';
import type { WorkflowDefinition } from './definitions.js';
import type { Execution } from './execution.js';
import type { Outcome } from './outcome-waiter.js';
import type { Serializer } from './serializer.js';

/** How an execution came to its end. */
export type ExecutionEnd =
  | { readonly kind: 'completed'; readonly outcome: Outcome }
  /** Ownership is lost: whoever waits here waits for what the owner records. */
  | { readonly kind: 'parked' }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'given-back' }
  /** Version conflicts without end: to be claimed again after a while, with the count on the wake-up. */
  | { readonly kind: 'requeued'; readonly delayMs: number; readonly requeues: number };

/** What an execution needs of the engine that runs it. */
export interface ExecutionHost {
  readonly store: WorkflowStore;
  readonly serializer: Serializer;
  readonly logger: Logger;
  /** False when the executor's lease may have lapsed: ownership is then verified before a body runs. */
  readonly leaseIsFresh: boolean;
  /** The database's clock as far as it is known here, milliseconds since 1970. */
  clockMs(): number;
  /** The execution is over: its slot is free. */
  ended(execution: Execution, end: ExecutionEnd): void;
  /** Waits for the outcome of a workflow, wherever it runs; at most as long as the execution that asks is there. */
  waitForOutcome(workflowId: string, waiting: Execution): Promise<Outcome>;
  /** Checks the arguments and options of a child, and encodes what it is to be started with. */
  prepare(
    definition: WorkflowDefinition,
    args: readonly unknown[],
    options: StartOptions,
    workflowId: string,
  ): Promise<WorkflowStart>;
  /** Runs a child that was created with its parent's checkpoint. */
  runChild(definition: WorkflowDefinition, start: WorkflowStart, ownership: Ownership): void;
  handleOf(workflowId: string): WorkflowHandle<unknown>;
}
