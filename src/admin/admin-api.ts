import type { StoredValue } from '../api/stored-value.js';
import type { WorkflowStatus } from '../api/workflow-handle.js';

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

/** What every control operation can be given, for the audit. */
export interface ControlRequest {
  /** Why; at most 4,096 bytes. */
  readonly reason?: string;
  /** Who; 1 to 256 bytes. Default `unknown`. */
  readonly actor?: string;
}

export interface CancelRequest extends ControlRequest {
  /** `keep` lets children go on. Default `cancel`. */
  readonly children?: 'cancel' | 'keep';
  /** Undo first what was done. Default `false`. */
  readonly compensate?: boolean;
}

export interface SkipCompensationRequest extends ControlRequest {
  /** Number of the compensation, as `rollback` lists it. */
  readonly seq: number;
}

export interface PrioritizeRequest extends ControlRequest {
  /** Lower goes first; a whole number of 32 bits. */
  readonly priority: number;
}

export interface SetAppVersionRequest extends ControlRequest {
  /** At most 200 bytes. */
  readonly appVersion: string;
}

export interface RewindRequest extends ControlRequest {
  /** Number of the first step that is to run again: 0 (after `continueAsNew`: `firstStep`) is the first step; the number after the last one keeps them all. */
  readonly toStep: number;
}

/**
 * What a person knows of a step.
 *
 * - `happened`: its effect is there, and `result` is its result.
 * - `failed`: its effect is not there, and `error` is what the workflow's code gets.
 * - `didNotHappen`: its effect is not there. Its body is run again.
 * - `skip`: whatever became of it, the workflow goes on with `result` (default: undefined). The record shows 0 attempts.
 * - `retry`: whatever became of it, its body is run again, under the idempotency key that it had. Refused in a rollback.
 */
export type StepRepair =
  | { readonly happened: true; readonly result: unknown }
  | { readonly failed: true; readonly error: unknown }
  | { readonly didNotHappen: true }
  | { readonly skip: true; readonly result?: unknown }
  | { readonly retry: true };

export interface RepairRequest extends ControlRequest {
  /** Number of the step, as in `steps`. */
  readonly seq: number;
  readonly repair: StepRepair;
  /** Has the workflow go on at once. Default `false`: it stays as it is, so that more can be repaired. */
  readonly resume?: boolean;
}

export interface ForkRequest extends ControlRequest {
  /** Number of the first step that the new workflow runs itself. */
  readonly fromStep: number;
  /** ID of the new workflow; 1 to 512 bytes. Default: a UUIDv7. */
  readonly workflowId?: string;
  /** App version that the new workflow runs on. Default: that of the source. */
  readonly appVersion?: string;
}

export interface DeleteRequest extends ControlRequest {
  /** Deletes it whatever its status, and whoever waits for it. Default `false`. */
  readonly force?: boolean;
}

/** How the fleet is doing. Counting stops at 10,000: that number means that many at least. */
export interface FleetOverview {
  /** Executors whose leases last, by app version. */
  readonly executors: readonly { readonly appVersion: string; readonly count: number }[];
  /** Workflows outside of queues that could be claimed, and are not yet. */
  readonly waiting: number;
  readonly queues: readonly {
    readonly name: string;
    readonly waiting: number;
    /** Workflows that hold a slot. */
    readonly running: number;
  }[];
  /** Workflows that wait for a time, or are suspended. */
  readonly delayed: number;
  /** Workflows that wait for a person: `list({ attention: true })`. */
  readonly attention: number;
  /** Events of the outbox. */
  readonly outbox: {
    /** To be delivered. */
    readonly pending: number;
    /** Waiting for a person: `outbox.list({ state: 'dead' })`. */
    readonly dead: number;
    /** Age of the oldest one that is to be delivered, in seconds; 0: there is none. */
    readonly lagSeconds: number;
  };
  readonly unservedVersions: readonly UnservedVersion[];
}

/** An app version that workflows wait for in vain. */
export interface UnservedVersion {
  readonly appVersion: string;
  /** How many; 10,000 means that many at least. */
  readonly workflows: number;
  /** Since when one of these has waited. */
  readonly since: Date;
}

/** What a control operation did to one workflow. */
export interface ControlResult {
  readonly workflowId: string;
  /** `unchanged`: it was that way already, and nothing was written. */
  readonly result: 'done' | 'unchanged';
  readonly statusBefore: WorkflowStatus;
  /** Null: there is no workflow of that ID any more. */
  readonly statusAfter: WorkflowStatus | null;
}

/** One of several: what was done, or the error that the call for this ID alone would have thrown. */
export type BulkResult =
  (ControlResult & { readonly ok: true }) | { readonly ok: false; readonly workflowId: string; readonly error: Error };

export interface ForkResult {
  /** ID of the new workflow. */
  readonly workflowId: string;
}

export interface PageRequest {
  /** Items on one page, 1 to 1,000. Default 100. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /**
   * Begins the next page; null on the last one. Good for the same list in the same order for ever. Pages may be shorter
   * than `limit` when payloads are large.
   */
  readonly nextCursor: string | null;
}

/** Filters of {@link AdminOperations.list}; a workflow has to fit all that are given. Lists hold at most 100 entries. */
export interface WorkflowFilter extends PageRequest {
  readonly status?: WorkflowStatus | readonly WorkflowStatus[];
  readonly name?: string | readonly string[];
  /** How the ID begins, literally: `%` and `_` are characters like others. */
  readonly idPrefix?: string;
  /** The executor that owns it, or owned it last. */
  readonly executorId?: string;
  readonly parentId?: string;
  readonly appVersion?: string;
  /** The queue that it is in, or was. */
  readonly queue?: string;
  /** The key that it has in its queue. */
  readonly key?: string;
  /** Whether a person has to look at it. */
  readonly attention?: boolean;
  /** Not created before this. */
  readonly createdFrom?: Date;
  /** Created before this. */
  readonly createdBefore?: Date;
  /** Default `newest-first`. */
  readonly order?: 'newest-first' | 'oldest-first';
  /** Whether to read inputs and outcomes. Default `false`. */
  readonly payload?: boolean;
}

export interface AttentionFilter extends PageRequest {
  /** Only entries of these codes; docs/attention.md has all of them. At most 100. */
  readonly code?: string | readonly string[];
}

interface AttentionReason {
  /** Stable; docs/attention.md has all of them. */
  readonly code: string;
  /** What was found. */
  readonly detail: string | null;
  readonly since: Date;
  /** What the code stands for, in words. */
  readonly meaning: string;
  /** What a person can do, with the operations that apply. */
  readonly whatToDo: string;
  /** Attempts so far. */
  readonly attempts: number;
}

/** Something that waits for a person. */
export type AttentionEntry =
  | (AttentionReason & {
      readonly kind: 'workflow';
      readonly workflowId: string;
      readonly name: string;
      readonly status: WorkflowStatus;
    })
  /** An event of the outbox. */
  | (AttentionReason & {
      readonly kind: 'event';
      readonly eventId: string;
      readonly topic: string;
      readonly key: string | null;
      /** The workflow that added it; null: it was added outside of workflows. */
      readonly workflowId: string | null;
    });

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

export interface OutboxEventFilter extends PageRequest {
  /** `pending`: to be delivered. Default: all. */
  readonly state?: 'pending' | 'dead';
  readonly topic?: string;
  /** Whether to read payloads and last errors. Default `false`. */
  readonly payload?: boolean;
}

export interface OutboxEventDetails {
  readonly eventId: string;
  readonly topic: string;
  readonly key: string | null;
  /** `waiting`: behind another event of its topic and key. `due`: delivered at `dueAt`, or being delivered. */
  readonly state: 'waiting' | 'due' | 'dead';
  readonly workflowId: string | null;
  readonly attempts: number;
  /** While it is being delivered: when another executor may take it. */
  readonly dueAt: Date | null;
  /** Why it is dead: all attempts failed, or its handler refused it for good. */
  readonly reason: 'ATTEMPTS_EXHAUSTED' | 'REFUSED' | null;
  readonly addedAt: Date;
  readonly diedAt: Date | null;
  /** Only with `payload`. */
  readonly payload?: StoredValue;
  /** Only with `payload`, when an attempt has failed. */
  readonly lastError?: StoredValue;
}

/** What was done to one event. */
export interface EventControlResult {
  readonly eventId: string;
  readonly result: 'done' | 'unchanged';
}

export interface WorkflowDetails {
  readonly workflowId: string;
  readonly name: string;
  readonly instance: string | null;
  readonly status: WorkflowStatus;
  /** Number of the newest ownership; 0: it was never owned. */
  readonly epoch: number;
  readonly recordVersion: number;
  /** The executor that owns it, or owned it last. */
  readonly executorId: string | null;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly appVersion: string;
  /** Number of the first step of the run that is under way; more than 0 after `continueAsNew`. */
  readonly firstStep: number;
  readonly wakeAt: Date | null;
  readonly timeoutMs: number | null;
  readonly deadline: Date | null;
  readonly parent: {
    readonly workflowId: string;
    readonly seq: number;
    readonly onParentCancel: 'cancel' | 'abandon';
  } | null;
  readonly forkedFrom: string | null;
  readonly attributes: Readonly<Record<string, unknown>> | null;
  /** Its place in a queue. */
  readonly queue: {
    readonly name: string;
    readonly priority: number;
    readonly key: string | null;
    /** Held until the workflow has ended. */
    readonly deduplicationId: string | null;
  } | null;
  /** Of a run of a schedule: the tick it runs for, and why it came to be. */
  readonly schedule: {
    readonly name: string;
    readonly scheduledAt: Date;
    readonly cause: 'tick' | 'trigger' | 'backfill' | 'fork';
  } | null;
  /** Why a person has to look. */
  readonly attention: { readonly code: string; readonly detail: string | null } | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  /** Only with `payload`: the arguments. */
  readonly input?: StoredValue;
  /** Only with `payload`, when it has ended: the result, */
  readonly output?: StoredValue;
  /** or the error. */
  readonly error?: StoredValue;
}

export interface StepDetails {
  readonly seq: number;
  readonly name: string;
  /**
   * `step`, `value` (now, random, uuid), `sleep`, `workflow` (a child's outcome), `start` (a child), `outcome`, `patch`, `rollback` (the
   * marker of one), `compensation`.
   */
  readonly kind: string;
  /** False: it has no result yet. A `step` whose outcome is unknown is one of these, unless an execution is just running it. */
  readonly complete: boolean;
  /** 0 of a complete step: it was skipped by hand. Of one that is not: the runs that ended without anybody knowing. */
  readonly attempts: number;
  readonly childId: string | null;
  /** When a sleep ends. */
  readonly wakeAt: Date | null;
  readonly recordVersion: number;
  /** The ownership that recorded it; 0: copied by a fork. */
  readonly epoch: number;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** Only with `payload`, when it is complete: the result, */
  readonly output?: StoredValue;
  /** or the error. */
  readonly error?: StoredValue;
  /** Only with `payload`: the errors of the attempts before the last one. */
  readonly attemptErrors?: readonly StoredValue[];
}

/** The rollback of a workflow. */
export interface RollbackDetails {
  readonly cause: 'failed' | 'timed-out' | 'cancelled';
  /** Number of its marker: the steps before it are those of the workflow. */
  readonly seq: number;
  readonly beganAt: Date;
  /** Only with `payload`: the error that the workflow ends with. */
  readonly error?: StoredValue;
  /** In the order in which they run. Empty until an execution has found out what there is to undo, and when that is nothing. */
  readonly compensations: readonly CompensationDetails[];
}

export interface CompensationDetails {
  readonly seq: number;
  /** Name of the step that it undoes, or the one given to `onRollback`. */
  readonly name: string;
  /** Number of the step that it undoes; null: it was registered by `onRollback`. */
  readonly undoes: number | null;
  /**
   * `pending`: not come to yet, or under way. `failed`: for good. `done`. `not-needed`: what it was to undo has not happened. `by-hand`:
   * recorded by `skipCompensation`.
   */
  readonly state: 'pending' | 'failed' | 'done' | 'not-needed' | 'by-hand';
  /** Of the execution that completed it. */
  readonly attempts: number;
  readonly completedAt: Date | null;
  /** Only with `payload`, when it failed. */
  readonly error?: StoredValue;
}

export interface OwnershipDetails {
  readonly epoch: number;
  readonly executorId: string;
  readonly incarnation: number;
  /** `started`, `claimed`, `recovered`, or `resumed` (by a resume or rewind). */
  readonly reason: string;
  readonly ownedAt: Date;
  /** Null: it lasts. */
  readonly endedAt: Date | null;
  /** `completed`, `released`, `blocked`, `taken over`, `continued`, or the control operation that ended it. */
  readonly endedHow: string | null;
}

export interface AuditDetails {
  /** The same for all that one call did. */
  readonly auditId: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
  readonly statusBefore: WorkflowStatus | null;
  readonly statusAfter: WorkflowStatus | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly actedAt: Date;
}
