/** What the code of a step can know about its own run. */
export interface StepContext {
  readonly workflowId: string;
  /** The step's number inside the workflow, from 0, by the order of the calls. */
  readonly seq: number;
  readonly name: string;
  /** From 1; counts anew when another execution runs the step again. */
  readonly attempt: number;
  /**
   * The same for every attempt of this step, in whichever process: a UUID, fit for an HTTP `Idempotency-Key`. Not even a
   * rewind changes it, nor deleting the workflow and starting its ID again.
   */
  readonly idempotencyKey: string;
  /** Fires when the attempt times out, and when the execution may no longer write. */
  readonly signal: AbortSignal;
}

/** What the code of a workflow can know about its own run. */
export interface WorkflowContext {
  readonly workflowId: string;
  /** Grows by one with every execution that takes the workflow over: a fencing number for the outside world. */
  readonly epoch: number;
  /**
   * How many executions the workflow has had, this one included: its start counts, each takeover, and what was requeued.
   * Giving back at shutdown does not; resume and rewind begin again at one.
   */
  readonly attempt: number;
  /** In a run of a schedule: which one, and the tick it runs for, the same on every replay and in a fork. */
  readonly schedule: { readonly name: string; readonly scheduledAt: Date } | undefined;
  /** Fires when this execution may no longer write. */
  readonly signal: AbortSignal;
}
