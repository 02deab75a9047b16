import type { WorkflowStatus } from '../api/workflow-handle.js';
import type { DeathReason } from './outbox-store.js';
import type { RollbackCause } from './rollback-store.js';

/**
 * What people and programs do to workflows from outside, and what they look at. Control operations need no ownership: they
 * take it away.
 *
 * A store that cannot reach its database keeps trying for a while, always as the same act, which takes effect once. It
 * answers; it does not throw for what the protocol foresees.
 */
export interface AdminStore extends ControlStore, RecordStore {
  /** Ends what waits to be tried again. Idempotent. */
  close(): Promise<void>;
}

/** Operations on several workflows take effect one by one: what happens to one of them does not depend on the others. */
export interface ControlStore {
  cancel(workflowIds: readonly string[], by: ControlCause, options: CancelOptions): Promise<readonly ControlAnswer[]>;
  resume(workflowIds: readonly string[], by: ControlCause): Promise<readonly ControlAnswer[]>;
  prioritize(workflowId: string, by: ControlCause, priority: number): Promise<ControlAnswer>;
  setAppVersion(
    workflowIds: readonly string[],
    by: ControlCause,
    appVersion: string,
  ): Promise<readonly ControlAnswer[]>;
  skipCompensation(workflowId: string, by: ControlCause, options: SkipCompensationOptions): Promise<ControlAnswer>;
  rewind(workflowId: string, by: ControlCause, options: RewindOptions): Promise<ControlAnswer>;
  repairStep(workflowId: string, by: ControlCause, repair: RepairOptions): Promise<ControlAnswer>;
  fork(workflowId: string, by: ControlCause, options: ForkOptions): Promise<ControlAnswer>;
  delete(workflowIds: readonly string[], by: ControlCause, options: DeleteOptions): Promise<readonly ControlAnswer[]>;
  redeliverEvent(request: EventVerbRequest): Promise<'done' | 'unchanged' | 'missing'>;
  discardEvent(request: EventVerbRequest): Promise<'done' | 'missing'>;
}

/** Reading; a missing workflow is null. */
export interface RecordStore {
  listWorkflows(query: WorkflowQuery): Promise<RecordPage<WorkflowRecord>>;
  getWorkflow(workflowId: string, options: { readonly payload: boolean }): Promise<WorkflowRecord | null>;
  /** By `seq`. */
  listSteps(workflowId: string, query: PageQuery & { readonly payload: boolean }): Promise<RecordPage<StepRow> | null>;
  /** Null: it is not being rolled back, or does not exist. */
  getRollback(workflowId: string): Promise<RollbackRow | null>;
  /** The newest epoch first. */
  listOwnership(workflowId: string, query: PageQuery): Promise<RecordPage<OwnershipRow> | null>;
  /** The newest act first. What was done to a deleted workflow stays. */
  listAudit(workflowId: string, query: PageQuery): Promise<RecordPage<AuditRow>>;
  /** App versions for which something waits and which no live executor has; at most `limit` workflows of each are counted. */
  unservedVersions(limit: number): Promise<readonly UnservedVersionRow[]>;
  /** Events of the outbox, the oldest first. */
  listEvents(query: EventQuery): Promise<RecordPage<EventRow>>;
  /** Everything that waits for a person, the oldest first. */
  listAttention(query: AttentionQuery): Promise<RecordPage<AttentionRow>>;
  /** How the fleet is doing; counting stops at `limit`. */
  overview(limit: number): Promise<readonly OverviewRow[]>;
}

/** Who does it, and why. */
export interface ControlCause {
  readonly actor: string;
  readonly reason: string | null;
}

export interface CancelOptions {
  /** The encoded error that a cancelled workflow ends with. */
  readonly error: string;
  /** Whether children that are to end with their parent do. */
  readonly children: 'cancel' | 'keep';
  /** Whether what was done is undone first. */
  readonly compensate: boolean;
}

export interface SkipCompensationOptions {
  readonly seq: number;
  /** The encoded result. */
  readonly output: string;
}

export interface RewindOptions {
  readonly toStep: number;
  /** What children that are cancelled end with. */
  readonly childError: string;
}

/** What a person says of a step. Texts are encoded values. */
export type RepairRecord =
  | { readonly repair: 'result' | 'skip'; readonly output: string; readonly error: null }
  | { readonly repair: 'error'; readonly output: null; readonly error: string }
  | { readonly repair: 'not-happened' | 'retry'; readonly output: null; readonly error: null };

export type RepairOptions = RepairRecord & { readonly seq: number; readonly resume: boolean };

export interface ForkOptions {
  readonly fromStep: number;
  readonly workflowId: string;
  /** Null: the source's. */
  readonly appVersion: string | null;
}

export interface DeleteOptions {
  readonly force: boolean;
  readonly childError: string;
}

export type ControlAnswer =
  | { readonly kind: 'done'; readonly statusBefore: WorkflowStatus | null; readonly statusAfter: WorkflowStatus | null }
  /** There was nothing to do, and nothing was written. */
  | { readonly kind: 'unchanged'; readonly status: WorkflowStatus }
  | { readonly kind: 'missing' }
  | { readonly kind: 'refused'; readonly refusal: ControlRefusal; readonly status: WorkflowStatus }
  /** The database refuses this very act, or could not be asked in time. In the second case it may have taken effect. */
  | { readonly kind: 'failed'; readonly error: Error };

export type ControlRefusal =
  /** Not in this status. */
  | { readonly kind: 'status' }
  /** There is no such step; `first` and `last` are the lowest and the highest number allowed. */
  | { readonly kind: 'step'; readonly first: number; readonly last: number }
  /** No such compensation is still to be done. */
  | { readonly kind: 'compensation' }
  /** The new ID is taken. */
  | { readonly kind: 'exists' }
  /** Nothing is recorded under that number. */
  | { readonly kind: 'unrecorded' }
  /** What is recorded under that number is no step. */
  | { readonly kind: 'kind'; readonly found: string }
  /** The step has a result. */
  | { readonly kind: 'recorded' }
  /** The workflow has gone on from the step's error: `by` is the number of something recorded later. */
  | { readonly kind: 'overtaken'; readonly by: string }
  /** The step is to be run again, and the workflow is being rolled back. */
  | { readonly kind: 'rollback' }
  /** A live execution owns the workflow. */
  | { readonly kind: 'owned' }
  /** A workflow that has not ended waits for this one, or may ask for its outcome. */
  | { readonly kind: 'awaited'; readonly by: string };

export interface PageQuery {
  readonly limit: number;
  /** Where the page before ended. */
  readonly cursor: string | null;
}

export interface RecordPage<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
}

/** Null: any. */
export interface WorkflowQuery extends PageQuery {
  readonly statuses: readonly WorkflowStatus[] | null;
  readonly names: readonly string[] | null;
  /** The first characters of the ID, literally. */
  readonly idPrefix: string | null;
  readonly executorId: string | null;
  readonly parentId: string | null;
  readonly appVersion: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  /** Whether a person has to look. */
  readonly attention: boolean | null;
  readonly createdFrom: Date | null;
  /** Exclusive. */
  readonly createdBefore: Date | null;
  readonly order: 'newest-first' | 'oldest-first';
  readonly payload: boolean;
}

/** One number of the overview. */
export interface OverviewRow {
  readonly kind: 'executors' | 'waiting' | 'running' | 'delayed' | 'attention' | 'outbox' | 'dead' | 'lag';
  /** An app version, or a queue; null: no queue. */
  readonly name: string | null;
  readonly amount: number;
}

export interface UnservedVersionRow {
  readonly appVersion: string;
  readonly workflows: number;
  readonly since: Date;
}

export interface EventVerbRequest {
  readonly eventId: string;
  /** Makes it the same act however often it is sent. */
  readonly nonce: string;
  readonly by: ControlCause;
}

/** Null: any. */
export interface EventQuery extends PageQuery {
  readonly isDead: boolean | null;
  readonly topic: string | null;
  readonly payload: boolean;
}

/** An event as recorded. Texts of `payload` are encoded values. */
export interface EventRow {
  readonly eventId: string;
  readonly topic: string;
  readonly key: string | null;
  readonly state: 'waiting' | 'due' | 'dead';
  readonly workflowId: string | null;
  readonly attempts: number;
  readonly dueAt: Date | null;
  readonly reason: DeathReason | null;
  readonly addedAt: Date;
  readonly diedAt: Date | null;
  /** Null unless asked for. */
  readonly payload: { readonly payload: string; readonly error: string | null } | null;
}

export interface AttentionQuery extends PageQuery {
  /** Null: any. */
  readonly codes: readonly string[] | null;
}

interface AttentionBase {
  readonly code: string;
  readonly detail: string | null;
  readonly since: Date;
  readonly attempts: number;
}

export type AttentionRow =
  | (AttentionBase & {
      readonly kind: 'workflow';
      readonly workflowId: string;
      readonly name: string;
      readonly status: WorkflowStatus;
    })
  | (AttentionBase & {
      readonly kind: 'event';
      readonly eventId: string;
      readonly topic: string;
      readonly key: string | null;
      readonly workflowId: string | null;
    });

/** A workflow as recorded. Texts of `payload` are encoded values. */
export interface WorkflowRecord {
  readonly workflowId: string;
  readonly name: string;
  readonly instance: string | null;
  readonly status: WorkflowStatus;
  readonly epoch: number;
  readonly recordVersion: number;
  readonly executorId: string | null;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly appVersion: string;
  readonly firstStep: number;
  readonly wakeAt: Date | null;
  readonly timeoutMs: number | null;
  readonly deadline: Date | null;
  readonly parent: ParentLink | null;
  readonly forkedFrom: string | null;
  /** JSON text. */
  readonly attributes: string | null;
  readonly queue: {
    readonly name: string;
    readonly priority: number;
    readonly key: string | null;
    readonly deduplicationId: string | null;
  } | null;
  readonly schedule: {
    readonly name: string;
    readonly scheduledAt: Date;
    readonly cause: 'tick' | 'trigger' | 'backfill' | 'fork';
  } | null;
  readonly attention: { readonly code: string; readonly detail: string | null } | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  /** Null unless asked for. */
  readonly payload: {
    readonly input: string | null;
    readonly output: string | null;
    readonly error: string | null;
  } | null;
}

export interface ParentLink {
  readonly workflowId: string;
  readonly seq: number;
  readonly onParentCancel: 'cancel' | 'abandon';
}

/** A step's result, or what an open step has recorded before it waits. */
export interface StepRow {
  readonly seq: number;
  readonly name: string;
  readonly kind: string;
  readonly complete: boolean;
  readonly attempts: number;
  readonly childId: string | null;
  readonly wakeAt: Date | null;
  readonly recordVersion: number;
  readonly epoch: number;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  readonly payload: {
    readonly output: string | null;
    readonly error: string | null;
    readonly attemptErrors: string | null;
  } | null;
}

export interface RollbackRow {
  readonly cause: RollbackCause;
  readonly seq: number;
  readonly beganAt: Date;
  /** Encoded: what the workflow ends with. */
  readonly error: string;
  readonly compensations: readonly {
    readonly seq: number;
    readonly name: string;
    readonly undoes: number | null;
    readonly state: 'pending' | 'failed' | 'done' | 'not-needed' | 'by-hand';
    readonly attempts: number;
    readonly completedAt: Date | null;
    /** The encoded error. */
    readonly failure: string | null;
  }[];
}

export interface OwnershipRow {
  readonly epoch: number;
  readonly executorId: string;
  readonly incarnation: number;
  readonly reason: string;
  readonly ownedAt: Date;
  readonly endedAt: Date | null;
  readonly endedHow: string | null;
}

export interface AuditRow {
  readonly auditId: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
  readonly statusBefore: WorkflowStatus | null;
  readonly statusAfter: WorkflowStatus | null;
  /** JSON text. */
  readonly detail: string | null;
  readonly actedAt: Date;
}
