import type { WorkflowStatus } from '../../api/workflow-handle.js';
import type { DeathReason } from '../outbox-store.js';
import type { StepKind, TerminalStatus } from '../store.js';

// The record, as sql/migrations has it. Times are milliseconds since 1970.

/** What `workflow_status` holds of a workflow. */
export interface StatusRow {
  readonly workflowId: string;
  readonly name: string;
  instance: string | null;
  status: WorkflowStatus;
  /** Present exactly when the status is PENDING. */
  ownerToken: string | null;
  epoch: number;
  recordVersion: number;
  executorId: string | null;
  incarnation: number | null;
  attempts: number;
  maxAttempts: number;
  appVersion: string;
  anyVersion: boolean;
  firstSeq: number;
  wakeAt: number | null;
  timeoutMs: number | null;
  deadline: number | null;
  parent: ParentRow | null;
  readonly forkedFrom: string | null;
  attributes: string | null;
  queue: string | null;
  priority: number;
  /** The empty text: no key. */
  partitionKey: string;
  queuedAt: number | null;
  deduplicationId: string | null;
  attention: string | null;
  attentionDetail: string | null;
  schedule: ScheduleRow | null;
  readonly createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  completedAt: number | null;
}

export interface ParentRow {
  readonly workflowId: string;
  readonly seq: number;
  readonly close: 'cancel' | 'abandon';
}

export interface ScheduleRow {
  readonly name: string;
  readonly scheduledAt: number;
  readonly cause: 'tick' | 'trigger' | 'backfill' | 'fork';
}

/** Everything that is recorded of one workflow, but the audit. */
export interface Workflow extends StatusRow {
  input: { readonly text: string; readonly nonce: string };
  outcome: OutcomeRow | null;
  /** By seq. */
  readonly results: Map<number, ResultRow>;
  readonly intents: Map<number, IntentRow | CompensationRow>;
  /** By epoch, the oldest first. */
  readonly ownerships: OwnershipRow[];
  /** By message ID, in the order of sending. */
  readonly messages: Map<string, MessageRow>;
  /** In the order of `recordVersion`. */
  events: EventRow[];
  readonly streams: Map<string, StreamRow[]>;
  /** By request ID. */
  readonly questions: Map<string, QuestionRow>;
}

export interface OutcomeRow {
  readonly status: TerminalStatus;
  readonly output: string | null;
  readonly error: string | null;
  readonly epoch: number;
  readonly nonce: string;
}

export interface ResultRow {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  readonly output: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly attemptErrors: string | null;
  readonly childId: string | null;
  readonly recordVersion: number;
  readonly epoch: number;
  readonly nonce: string;
  readonly startedAt: number;
  readonly completedAt: number;
}

export interface IntentRow {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  readonly childId: string | null;
  readonly wakeAt: number | null;
  /** Runs of the body of which it is on record that nobody knows what became of them. */
  readonly attempts: number;
  readonly recordVersion: number;
  readonly epoch: number;
  readonly nonce: string;
  readonly recordedAt: number;
}

/** What an intent of kind `compensation` has besides. */
export interface CompensationRow extends IntentRow {
  readonly kind: 'compensation';
  readonly undoes: number | null;
  /** The encoded error with which it failed for good. */
  failure: string | null;
}

export interface OwnershipRow {
  readonly epoch: number;
  readonly executorId: string;
  readonly incarnation: number;
  readonly reason: 'started' | 'recovered' | 'resumed' | 'claimed';
  readonly ownedAt: number;
  endedAt: number | null;
  endedHow: string | null;
  /** Of the write that gave the ownership up. */
  nonce: string | null;
}

export interface MessageRow {
  readonly messageId: string;
  readonly topic: string;
  readonly payload: string;
  readonly sender: string | null;
  /** The call that received it; null: it waits. */
  consumedSeq: number | null;
}

export interface EventRow {
  readonly key: string;
  readonly value: string;
  readonly seq: number;
  readonly recordVersion: number;
}

/** Its place in the list is its offset. */
export interface StreamRow {
  /** Null in the last entry of a stream that has been closed. */
  readonly value: string | null;
  readonly seq: number;
  readonly attempt: number;
  readonly oncePlace: number | null;
  readonly epoch: number;
  readonly nonce: string;
  readonly writtenAt: number;
}

export interface QuestionRow {
  readonly name: string;
  readonly args: string;
  readonly askedAt: number;
  readonly expiresAt: number;
  reply: string | null;
  error: string | null;
}

export interface ExecutorRow {
  readonly executorId: string;
  readonly incarnation: number;
  readonly appVersion: string;
  leaseUntil: number;
}

export interface QueueRow {
  readonly name: string;
  concurrency: number | null;
  executorConcurrency: number | null;
  keyConcurrency: number | null;
  rateLimit: Rate | null;
  keyRateLimit: Rate | null;
  paused: boolean;
  /** The declaration that was applied last, as JSON. */
  declared: string | null;
  readonly createdAt: number;
  updatedAt: number;
}

export interface Rate {
  readonly limit: number;
  readonly periodMs: number;
}

/** A claim from a queue with a rate limit. */
export interface QueueStartRow {
  readonly queue: string;
  readonly partitionKey: string;
  readonly startedAt: number;
}

export interface DeduplicationRow {
  readonly queue: string;
  readonly deduplicationId: string;
  workflowId: string;
  heldUntil: number | null;
  checkedAt: number;
}

export interface DebounceRow {
  readonly queue: string;
  readonly name: string;
  readonly debounceKey: string;
  workflowId: string;
  firstAt: number;
  checkedAt: number;
}

/** An event of the outbox. */
export interface OutboxRow {
  readonly eventId: string;
  readonly topic: string;
  /** Null: in no order. */
  readonly key: string | null;
  readonly payload: string;
  /** `new`: without a place in its lane. `behind`: waits for the lane's head. `ready`: is delivered when it is due. */
  state: 'new' | 'behind' | 'ready' | 'dead';
  /** The workflow that added it, and its call, until that workflow is deleted. */
  readonly workflowId: string | null;
  seq: number | null;
  attempts: number;
  dueAt: number;
  /** Of the relay that has it, or had it last. */
  token: string | null;
  reason: DeathReason | null;
  error: string | null;
  readonly addedAt: number;
  diedAt: number | null;
}

export interface AuditRow {
  readonly auditId: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
  readonly statusBefore: WorkflowStatus | null;
  readonly statusAfter: WorkflowStatus | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly actedAt: number;
}

export const TERMINAL_STATUSES: readonly WorkflowStatus[] = ['SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'];

export function isTerminal(status: WorkflowStatus): boolean {
  return TERMINAL_STATUSES.includes(status);
}

/** A workflow's row before anything has happened to it. */
export function newWorkflow(
  given: Pick<StatusRow, 'workflowId' | 'name' | 'status' | 'recordVersion' | 'maxAttempts' | 'createdAt'> &
    Partial<Workflow> & { readonly input: Workflow['input'] },
): Workflow {
  return {
    instance: null,
    ownerToken: null,
    epoch: 0,
    executorId: null,
    incarnation: null,
    attempts: 0,
    appVersion: '',
    anyVersion: false,
    firstSeq: 0,
    wakeAt: null,
    timeoutMs: null,
    deadline: null,
    parent: null,
    forkedFrom: null,
    attributes: null,
    queue: null,
    priority: 0,
    partitionKey: '',
    queuedAt: null,
    deduplicationId: null,
    attention: null,
    attentionDetail: null,
    schedule: null,
    updatedAt: given.createdAt,
    startedAt: null,
    completedAt: null,
    outcome: null,
    results: new Map(),
    intents: new Map(),
    ownerships: [],
    messages: new Map(),
    events: [],
    streams: new Map(),
    questions: new Map(),
    ...given,
  };
}
