import type { Duration } from './duration.js';
import type { StandardSchema } from './standard-schema.js';

/** What `@Workflow` and `defineWorkflow` take. */
export interface WorkflowOptions<Input = unknown, Output = unknown> {
  /** Name in the record. Default: the method's name. It must stay the same over releases. */
  readonly name?: string;
  /** Checked against the first argument before anything is written; the workflow gets the schema's output. */
  readonly input?: StandardSchema<unknown, Input>;
  /** Checked against the result before it is recorded; a result that does not fit is recorded as an error. */
  readonly output?: StandardSchema<unknown, Output>;
  /** Executions of one workflow, its start included, before it becomes `DEAD_LETTER` at the next claim. Default 100. */
  readonly maxAttempts?: number;
  /**
   * Time from the start until the workflow ends as `ERROR` with a `WorkflowTimeoutError`. The execution that runs it enforces
   * it, so it takes an executor. Default: none.
   */
  readonly timeout?: Duration;
  /**
   * Time without any durable progress, while something runs (a step body, code between calls) and not everything waits, after which
   * the workflow is listed for attention as `STUCK`, until it goes on. Looked at once a second. Default: none.
   */
  readonly stuckAfter?: Duration;
  /** What becomes of it then: `fail` ends it as `ERROR` with a `WorkflowStuckError`. Default `report`. */
  readonly onStuck?: 'report' | 'fail';
}

/** What `start` takes. */
export interface StartOptions {
  /**
   * 1 to 512 bytes. Starting the same ID again attaches to the workflow that has it, whatever its arguments. Default: a
   * UUIDv7; of a child, its parent's ID with the number of the call and a mark of the execution.
   */
  readonly workflowId?: string;
  /** For workflows that are methods of registered objects: which of them. */
  readonly instance?: string;
  /** Overrides the workflow's own `timeout`. */
  readonly timeout?: Duration;
  /** Overrides the workflow's own `maxAttempts`. */
  readonly maxAttempts?: number;
  /**
   * A plain JSON object that goes with the workflow, at most 64 KiB: `admin.get` and `admin.list` show it, and SQL finds it
   * (`workflow_status.attributes`, a `jsonb`).
   */
  readonly attributes?: Readonly<Record<string, unknown>>;
  /** Inside a workflow: whether cancelling it cancels the child too. Default `cancel`. */
  readonly onParentCancel?: 'cancel' | 'abandon';
}
