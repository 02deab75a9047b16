import type { Ownership, RecordedStep, ScheduleTick } from '../store/store.js';
import type { WorkflowDefinition } from './definitions.js';

/** What an execution is made of. */
export interface ExecutionStart {
  readonly definition: WorkflowDefinition;
  readonly ownership: Ownership;
  /** The registered object whose method the workflow is. */
  readonly self: unknown;
  readonly input: string;
  /** The number of the run's first call. */
  readonly firstSeq: number;
  readonly attempt: number;
  readonly deadlineInMs: number | null;
  readonly history: readonly RecordedStep[];
  readonly schedule?: ScheduleTick | undefined;
  /** How often in a row this workflow was requeued without progress. */
  readonly requeues: number;
}
