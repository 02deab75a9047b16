import type {
  AttentionEntry,
  AuditDetails,
  BulkResult,
  ControlResult,
  EventControlResult,
  FleetOverview,
  ForkResult,
  OutboxEventDetails,
  OwnershipDetails,
  Page,
  RollbackDetails,
  StepDetails,
  UnservedVersion,
  WorkflowDetails,
} from './admin-answers.js';
import type {
  AttentionFilter,
  CancelRequest,
  ControlRequest,
  DeleteRequest,
  ForkRequest,
  OutboxEventFilter,
  PageRequest,
  PrioritizeRequest,
  RepairRequest,
  RewindRequest,
  SetAppVersionRequest,
  SkipCompensationRequest,
  WorkflowFilter,
} from './admin-requests.js';

/**
 * What people and programs do to workflows from outside: control operations, and lists.
 *
 * A control operation takes ownership away from whatever execution runs the workflow, changes its status, and writes an
 * audit row with who did it and why, all in one transaction. It never waits for the execution: from that moment on the
 * execution cannot write, and it is told to stop. Which operation does what in which status: `docs/admin.md`.
 *
 * All methods throw {@link InvalidArgumentError} for arguments of the wrong form, before anything is written. The database
 * being away for a moment is waited out; a {@link DatabaseError}, {@link ConnectionLostError} or
 * {@link ConnectionUnavailableError} comes after a minute. Repeating any operation is safe.
 *
 * With a list of IDs, `cancel`, `resume`, `setAppVersion` and `delete` act on each of them alone and return one result for each, in the
 * order of the list; they throw only for arguments that concern all. At most 10,000 IDs.
 */
export interface AdminOperations {
  /**
   * Ends a workflow that has not ended as `CANCELLED`, and its children with it, as far as they were started to end with
   * their parent (`onParentCancel`). A step body that is running is told by its signal; its result is discarded.
   *
   * With `compensate`, what it has done is undone first: its status is `ENQUEUED` again (and in `statusAfter`), whoever claims it runs the
   * compensations, and then it ends as `CANCELLED`. One in which nothing was done yet ends at once; one that is being rolled back
   * already is left unchanged. See `docs/sagas.md`.
   *
   * @throws WorkflowNotFoundError
   */
  cancel(workflowId: string, options?: CancelRequest): Promise<ControlResult>;
  cancel(workflowIds: readonly string[], options?: CancelRequest): Promise<readonly BulkResult[]>;

  /**
   * Lets a workflow that was cancelled, given up or blocked, or that waits, go on from where its record ends, with fresh
   * attempts and a fresh deadline; and the children that were cancelled with it. Completed steps do not run again.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError when it has succeeded or failed: rewind or fork it.
   */
  resume(workflowId: string, options?: ControlRequest): Promise<ControlResult>;
  resume(workflowIds: readonly string[], options?: ControlRequest): Promise<readonly BulkResult[]>;

  /**
   * Changes a workflow's priority in its queue. Takes nothing away from an execution that runs it.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError when it has ended.
   */
  prioritize(workflowId: string, options: PrioritizeRequest): Promise<ControlResult>;

  /**
   * Moves a workflow that has not ended to another app version, whose executors go on with it. One that runs is taken away from
   * its execution. The code of that version has to fit what is recorded. One that has not begun, or has continued as new, is
   * claimed by any version, and so left unchanged.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError when it has ended: fork it with `appVersion`.
   */
  setAppVersion(workflowId: string, options: SetAppVersionRequest): Promise<ControlResult>;
  setAppVersion(workflowIds: readonly string[], options: SetAppVersionRequest): Promise<readonly BulkResult[]>;

  /**
   * Takes a workflow back to before step `toStep` and lets it run again from there: that step and all later ones run
   * again, with the idempotency keys that they had. From any status.
   *
   * @throws WorkflowNotFoundError
   * @throws StepNotFoundError when it has recorded fewer steps, or when the step is one of a run before `continueAsNew`.
   */
  rewind(workflowId: string, options: RewindRequest): Promise<ControlResult>;

  /**
   * Says what became of a step that no live execution is running: of one whose outcome is unknown, or of one whose failure is the
   * last thing that the workflow has recorded. In the second case, and with `resume`, the workflow goes on from there.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError while a live execution owns the workflow: cancel it first, or wait until it is blocked. Also when it
   * is to go on and has ended with an outcome that does not come from the step.
   * @throws StepNotFoundError when nothing is recorded under that number, or something else than a step.
   * @throws StepRecordedError when it has a result, or the workflow has gone on from its error: rewind or fork it.
   * @throws ValueNotSerializableError, PayloadTooLargeError
   */
  repairStep(workflowId: string, options: RepairRequest): Promise<ControlResult>;

  /**
   * Makes a new workflow that has the input of this one and its results before step `fromStep`, and goes on from there.
   * This one is not changed.
   *
   * @throws WorkflowNotFoundError
   * @throws StepNotFoundError when it has recorded fewer steps, or when the step is one of a run before `continueAsNew`.
   * @throws WorkflowExistsError when the new ID is taken.
   */
  fork(workflowId: string, options: ForkRequest): Promise<ForkResult>;

  /**
   * Deletes a workflow that has ended, with everything but its audit. Its ID is free afterwards.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError when it has not ended, or when a workflow that has not ended may still ask for its outcome.
   * `force` deletes it all the same.
   */
  delete(workflowId: string, options?: DeleteRequest): Promise<ControlResult>;
  delete(workflowIds: readonly string[], options?: DeleteRequest): Promise<readonly BulkResult[]>;

  /** One page of the workflows that fit all the filters given. Default: all of them, the newest first. */
  list(filter?: WorkflowFilter): Promise<Page<WorkflowDetails>>;

  /**
   * One workflow.
   * @throws WorkflowNotFoundError
   */
  get(workflowId: string, options?: { readonly payload?: boolean }): Promise<WorkflowDetails>;

  /**
   * One page of a workflow's steps, in the order of their numbers: results, and steps that wait.
   * @throws WorkflowNotFoundError
   */
  steps(workflowId: string, options?: PageRequest & { readonly payload?: boolean }): Promise<Page<StepDetails>>;

  /**
   * One page of who owned a workflow, one entry an epoch, the newest first.
   * @throws WorkflowNotFoundError
   */
  ownership(workflowId: string, options?: PageRequest): Promise<Page<OwnershipDetails>>;

  /** One page of what was done to a workflow by control operations, the newest first. Outlives the workflow. */
  audit(workflowId: string, options?: PageRequest): Promise<Page<AuditDetails>>;

  /**
   * One page of everything that waits for a person, the oldest first: workflows (dead letters, unknown outcomes, failed compensations,
   * nondeterminism, stuck ones, …) and events that could not be delivered, each with its reason and what to do about it.
   */
  attention(filter?: AttentionFilter): Promise<Page<AttentionEntry>>;

  /** Events of the outbox. */
  readonly outbox: OutboxAdminOperations;

  /**
   * What is undone of a workflow that has failed, run out of time or been cancelled with `compensate`, in the order in which it is
   * undone: what has been, what failed, what is still to come. Null: it is not being rolled back, nor was it.
   * @throws WorkflowNotFoundError
   */
  rollback(workflowId: string, options?: { readonly payload?: boolean }): Promise<RollbackDetails | null>;

  /**
   * Records a compensation as dealt with by hand, so that the rollback goes on with the next one when the workflow is resumed.
   *
   * @throws WorkflowNotFoundError
   * @throws WorkflowStateError while an execution runs the workflow, and when it is not being rolled back.
   * @throws StepNotFoundError when no compensation of that number is planned, or it has been dealt with.
   */
  skipCompensation(workflowId: string, options: SkipCompensationRequest): Promise<ControlResult>;

  /** The app versions for which workflows wait and which no live executor has. Usually none. */
  unservedVersions(): Promise<readonly UnservedVersion[]>;

  /** How the fleet is doing: executors, what waits, what needs a person. */
  overview(): Promise<FleetOverview>;
}

/** Events of the outbox that are not delivered yet. An event that was delivered is gone. */
export interface OutboxAdminOperations {
  /** One page of events, the oldest first. */
  list(filter?: OutboxEventFilter): Promise<Page<OutboxEventDetails>>;
  /**
   * Has a dead event delivered again, with fresh attempts. `unchanged`: it is not dead. Audited under the ID of the event:
   * `admin.audit(eventId)`.
   * @throws OutboxEventNotFoundError
   */
  redeliver(eventId: string, options?: ControlRequest): Promise<EventControlResult>;
  /**
   * Gives an event up, dead or not, and lets those go on that wait behind it. One that is just being delivered may arrive all the same.
   * @throws OutboxEventNotFoundError
   */
  discard(eventId: string, options?: ControlRequest): Promise<EventControlResult>;
}
