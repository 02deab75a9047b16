import type { StoreCounters } from './store-counters.js';
import type { EventToAdd } from './event-to-add.js';
import type { Denied, Refused } from './refusals.js';
import type { CompensationFailure, PlannedCompensation, RollbackRecord } from './rollback-store.js';
import type { StreamReads, StreamWrite, StreamWriteAnswer } from './stream-store.js';

export type { Denied, Refused };

/**
 * The seam between the engine and whatever keeps its records. The engine knows only this interface; one conformance
 * suite runs against every implementation.
 *
 * A store that cannot reach its database keeps trying: its promises settle when it knows what really happened, or when it
 * is closed. It answers; it does not throw for what the protocol foresees.
 */
export interface Store extends WorkflowStore, ExecutorStore {
  readonly streams: StreamReads;
  /** Hints from other processes. They may be lost, late or doubled. */
  subscribe(handlers: StoreHints): void;
  /** Waits for writes that are under way, up to `drainMs`, then lets go of everything. Idempotent. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** What executions write and read. */
export interface WorkflowStore {
  readonly counters: Readonly<StoreCounters>;
  start(request: StartRequest): Promise<StartAnswer>;
  /** Records one step result. Results of one workflow are recorded in the order of the calls. */
  checkpoint(ownership: Ownership, result: StepRecord): Promise<WriteAnswer>;
  recordIntent(ownership: Ownership, intent: IntentRecord): Promise<IntentAnswer>;
  /** Records that nobody knows what became of a step's body, with or without an intent of it on record. */
  markUnknown(ownership: Ownership, mark: UnknownRecord): Promise<WriteAnswer>;
  /** Enqueues a workflow together with the record of it. */
  recordEnqueue(ownership: Ownership, record: EnqueueRecord): Promise<EnqueueRecordAnswer>;
  /** Takes the longest waiting message of a topic and records it as the call's result. */
  receive(ownership: Ownership, record: ReceiveRecord): Promise<ReceiveAnswer>;
  /** Sends a message together with the record of it, and tells the receiver's executor. */
  recordSend(ownership: Ownership, record: SendRecord): Promise<SendRecordAnswer>;
  /** Sets an event together with the record of it, and tells whoever waits for it. */
  recordEvent(ownership: Ownership, record: EventRecord): Promise<WriteAnswer>;
  /** Writes an entry of a stream. Those of one workflow are written in the order of the calls. */
  writeStream(ownership: Ownership, write: StreamWrite): Promise<StreamWriteAnswer>;
  complete(ownership: Ownership, outcome: OutcomeRecord): Promise<WriteAnswer>;
  release(ownership: Ownership, release: ReleaseRecord): Promise<WriteAnswer>;
  /** Records the marker of a rollback and gives the workflow up, to be claimed at once. */
  beginRollback(ownership: Ownership, rollback: RollbackRecord): Promise<WriteAnswer>;
  /** Records what is going to be run, before any of it is. What is recorded already stays. */
  planRollback(ownership: Ownership, plan: readonly PlannedCompensation[]): Promise<WriteAnswer>;
  /** Keeps the error of a compensation that failed for good, and blocks the workflow. */
  failCompensation(ownership: Ownership, failure: CompensationFailure): Promise<WriteAnswer>;
  /** What is planned, in the order in which it runs. */
  readPlan(workflowId: string): Promise<readonly PlannedCompensation[]>;
  /** Drops the history, replaces the input, and gives the workflow up, to be claimed at once. */
  continueAsNew(ownership: Ownership, run: NextRun): Promise<WriteAnswer>;
  /** Unloads a workflow in which nothing runs and everything waits, unless one of these has come meanwhile. */
  suspend(ownership: Ownership, waits: readonly Wait[]): Promise<SuspendAnswer>;
  /**
   * Ends a workflow that makes no progress as `ERROR`, listed for attention. By token alone, since its version is what
   * keeps moving; it does nothing when ownership has passed on.
   */
  failStuck(ownership: Ownership, error: string): Promise<void>;
  /** Lists a workflow for attention while its execution makes no progress; null takes that back. */
  markStuck(ownership: Ownership, detail: string | null): Promise<void>;
  verifyOwnership(ownership: Ownership): Promise<boolean>;
  /** Outcomes of those that have one, and `missing` for those that do not exist; silent about the others. */
  readOutcomes(workflowIds: readonly string[]): Promise<readonly FoundOutcome[]>;
  /** Whether a message waits in these topics, in their order. */
  findMessages(topics: readonly MessageTopic[]): Promise<readonly boolean[]>;
  /** What is known of these events, in their order; undefined where one has to wait. */
  readEvents(events: readonly EventAddress[]): Promise<readonly (FoundEvent | undefined)[]>;
  /** Tells relays that there may be an event to deliver. A hint, never waited for. */
  announceEvents(): void;
  /** Tells other processes that these have outcomes now. A hint, never waited for. */
  announceOutcome(workflowId: string): void;
}

/** What an executor as a whole asks. */
export interface ExecutorStore {
  registerExecutor(registration: ExecutorRegistration): Promise<number>;
  heartbeat(executor: ExecutorIdentity, leaseMs: number): Promise<HeartbeatAnswer>;
  deregisterExecutor(executor: ExecutorIdentity): Promise<void>;
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** What the executor owns by the store's account, to be compared with what it runs. */
  ownedWorkflows(executor: ExecutorIdentity): Promise<readonly OwnedWorkflow[]>;
}

/**
 * One execution's right to write: *who* (token) and *which state it saw* (record version), checked together by every
 * write. The store alone moves `recordVersion` on.
 */
export interface Ownership {
  readonly workflowId: string;
  readonly token: string;
  readonly epoch: number;
  recordVersion: number;
}

export interface ExecutorIdentity {
  readonly executorId: string;
  /** Grows with every process that registers under the same ID. */
  readonly incarnation: number;
}

export interface ExecutorRegistration {
  readonly executorId: string;
  readonly appVersion: string;
  readonly leaseMs: number;
  readonly host: string;
  readonly processId: number;
}

/** Heartbeats in one lease: two may fail before it lapses. */
export const HEARTBEATS_PER_LEASE = 3;

export interface HeartbeatAnswer {
  readonly state: 'renewed' | 'superseded' | 'unregistered';
  /** The database's clock, milliseconds since 1970. */
  readonly clockMs: number;
}

/** What a workflow is started with. Texts are encoded values. */
export interface WorkflowStart {
  readonly workflowId: string;
  readonly name: string;
  readonly instance: string | null;
  readonly input: string;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  /** JSON text, or null. */
  readonly attributes: string | null;
}

export interface StartRequest extends WorkflowStart {
  readonly executor: ExecutorIdentity;
  readonly appVersion: string;
  readonly token: string;
}

export type StartAnswer =
  | { readonly kind: 'started'; readonly ownership: Ownership }
  /** The ID is taken: by a workflow of this name, to attach to, or by one of another. */
  | { readonly kind: 'exists'; readonly name: string; readonly status: string }
  /** This call started it, and ownership has moved on since: the reply took too long. */
  | { readonly kind: 'lost' }
  | Refused;

/** A step's result as recorded. Exactly one of `output` and `error` is text. */
export interface StepRecord {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  readonly output: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly attemptErrors: string | null;
  readonly childId: string | null;
  readonly elapsedMs: number;
  /** Added to the outbox in the same transaction, in this order. Only with an output. Missing: none. */
  readonly events?: readonly EventToAdd[];
}

/**
 * `step`: a body ran. `transaction`: a body ran in the database transaction of its own record. `value`: now, random, uuid. `sleep`. `workflow`: a child's outcome. `start`: a child's handle.
 * `enqueue`: the handle of a child in a queue. `outcome`: any workflow's. `patch`: a marker. `continue`: continue-as-new, where
 * it failed. `receive`: a message, or that none came in time. `send`: that a message was sent. `event`: that an event was set.
 * `event-read`: the value of an event, or that it was not set in time. `stream`, `stream-close`: an entry of a stream.
 * `outbox`: that an event was added to the outbox.
 * `rollback`: the marker that a rollback has begun; its name says why. `compensation`: a compensation that ran.
 */
export type StepKind =
  | 'step'
  | 'transaction'
  | 'value'
  | 'sleep'
  | 'workflow'
  | 'start'
  | 'enqueue'
  | 'outcome'
  | 'patch'
  | 'continue'
  | 'receive'
  | 'send'
  | 'event'
  | 'event-read'
  | 'stream'
  | 'stream-close'
  | 'outbox'
  | 'rollback'
  | 'compensation';

export interface IntentRecord {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  /** For a sleep, or a wait with a time limit: how long from now, or until when (milliseconds since 1970); both by the database's clock. */
  readonly sleep?: { readonly ms: number } | { readonly untilMs: number };
  readonly child?: ChildStart;
}

export interface UnknownRecord {
  readonly seq: number;
  readonly name: string;
  /** Runs of the body that ended without anybody knowing; at least 1. */
  readonly attempts: number;
}

export interface ChildStart extends WorkflowStart {
  readonly token: string;
  /** What cancelling the parent does to the child. */
  readonly onParentCancel: 'cancel' | 'abandon';
}

export type IntentAnswer =
  | { readonly kind: 'written'; readonly remainingMs: number | null; readonly child: ChildAnswer | null }
  | { readonly kind: 'child-name-taken'; readonly name: string }
  | Denied
  | Refused;

/** What a workflow is enqueued with. */
export interface EnqueueRequest extends WorkflowStart {
  readonly queue: string | null;
  readonly priority: number;
  readonly key: string | null;
  readonly delayMs: number;
  readonly deduplication: {
    readonly id: string;
    /** Null: until the workflow has ended. */
    readonly windowMs: number | null;
    readonly onConflict: 'reject' | 'attach' | 'cancel-older';
    /** The encoded error that the older one ends with, where it is cancelled. */
    readonly cancelledError: string | null;
  } | null;
  /** `delayMs` is then how long each call pushes the start back. */
  readonly debounce: {
    readonly key: string;
    /** Null: no limit. */
    readonly maxWaitMs: number | null;
  } | null;
}

/** Nothing was written. */
export type EnqueueRefusal =
  { readonly kind: 'no-queue'; readonly queue: string } | { readonly kind: 'deduplicated'; readonly holder: string };

export interface EnqueueRecord {
  readonly seq: number;
  readonly name: string;
  readonly child: EnqueueRequest & { readonly onParentCancel: 'cancel' | 'abandon' };
}

export type EnqueueRecordAnswer =
  /** `childId`: the workflow that is recorded; another one than asked for when it was attached to. */
  | { readonly kind: 'written'; readonly childId: string }
  | { readonly kind: 'child-name-taken'; readonly name: string }
  | EnqueueRefusal
  | Denied
  | Refused;

/** A topic of one workflow. */
export interface MessageTopic {
  readonly workflowId: string;
  readonly topic: string;
}

export interface ReceiveRecord {
  readonly seq: number;
  readonly topic: string;
  /** The encoded result when no message waits, since the time is up; null: not to be recorded then. */
  readonly otherwise: string | null;
  readonly elapsedMs: number;
}

export type ReceiveAnswer =
  /** Recorded: the message, or what was to be recorded without one. */
  { readonly kind: 'received'; readonly payload: string } | { readonly kind: 'empty' } | Denied | Refused;

export interface SendRecord {
  readonly seq: number;
  readonly name: string;
  readonly receiver: string;
  readonly topic: string;
  readonly payload: string;
  readonly idempotencyKey: string | null;
  /** The encoded result of the call. */
  readonly output: string;
  readonly elapsedMs: number;
}

/** Nothing was written. */
export type SendRefusal =
  { readonly kind: 'no-receiver' } | { readonly kind: 'receiver-ended'; readonly status: string };

export type SendRecordAnswer = { readonly kind: 'written' } | SendRefusal | Denied | Refused;

export interface EventRecord {
  readonly seq: number;
  readonly key: string;
  readonly value: string;
  /** The encoded result of the call. */
  readonly output: string;
  readonly elapsedMs: number;
}

/** An event of one workflow. */
export interface EventAddress {
  readonly workflowId: string;
  readonly key: string;
}

export type FoundEvent =
  | { readonly kind: 'set'; readonly value: string }
  /** The workflow has ended without setting it; `CONTINUED`: the run that was asked for it, by an update, has continued as new. */
  | { readonly kind: 'ended'; readonly status: string }
  | { readonly kind: 'missing' };

/** `created`: the caller owns the child and has to run it. `attached`: somebody else does, or did. */
export type ChildAnswer = 'created' | 'attached';

export type TerminalStatus = 'SUCCESS' | 'ERROR' | 'CANCELLED' | 'DEAD_LETTER';

export interface OutcomeRecord {
  /** `CANCELLED`: at the end of a rollback. */
  readonly status: 'SUCCESS' | 'ERROR' | 'CANCELLED';
  readonly output: string | null;
  readonly error: string | null;
  readonly attention: string | null;
}

export type ReleaseRecord =
  | { readonly to: 'ENQUEUED'; readonly unspendAttempt: boolean }
  | { readonly to: 'DELAYED'; readonly wakeInMs: number; readonly unspendAttempt: boolean }
  | { readonly to: 'BLOCKED'; readonly attention: string; readonly detail: string };

/** What a workflow continues with. */
export interface NextRun {
  readonly input: string;
  /** The number of its first call. */
  readonly firstSeq: number;
  /** Numbers of receiving calls whose message the code has not got: what they have taken waits for the next run. */
  readonly unreceived: readonly number[];
}

/** What a durable call waits for. */
export type Wait =
  /** A moment that is on record: the earliest of them is when the workflow is claimed again. */
  | { readonly kind: 'timer' }
  | { readonly kind: 'outcome'; readonly workflowId: string }
  | { readonly kind: 'message'; readonly topic: string }
  | { readonly kind: 'event'; readonly workflowId: string; readonly key: string };

export type SuspendAnswer =
  | { readonly kind: 'suspended' }
  /** Something that is waited for is there, or just being written: the execution goes on. Nothing was written. */
  | { readonly kind: 'not-now' }
  | Denied
  | Refused;

export type WriteAnswer = { readonly kind: 'written' } | Denied | Refused;

export type FoundOutcome =
  | {
      readonly kind: 'outcome';
      readonly workflowId: string;
      readonly status: TerminalStatus;
      readonly output: string | null;
      readonly error: string | null;
    }
  | { readonly kind: 'missing'; readonly workflowId: string };

export interface ClaimRequest {
  readonly executor: ExecutorIdentity;
  readonly appVersion: string;
  readonly names: readonly string[];
  readonly limit: number;
  /** Only these workflows, when given. */
  readonly only?: readonly string[];
  /** The encoded error that a workflow over its attempt limit ends with. */
  readonly deadLetterError: string;
  /** `turns` of the claim before; null at the first. */
  readonly turns: string | null;
  /** The claim just before has looked at what suspended workflows may wait for: not again. */
  readonly wakeupsSeen?: boolean;
}

export interface ClaimAnswer {
  readonly workflows: readonly ClaimedWorkflow[];
  /** Something waits in queues that their limits keep back: ask again when a slot gets free. */
  readonly isLimited: boolean;
  /** Ask again after this many milliseconds, whatever happens; null: nothing is known of. */
  readonly againInMs: number | null;
  /** Ask again soon, and later each time in vain: somebody else was just claiming, or not everything was looked at. */
  readonly isSoon: boolean;
  /** Whose turn it is in the queues. The store's own text; null: nobody's in particular. */
  readonly turns: string | null;
}

export interface ClaimedWorkflow {
  readonly ownership: Ownership;
  readonly name: string;
  readonly instance: string | null;
  readonly attempts: number;
  readonly reason: 'recovered' | 'resumed' | 'claimed';
  readonly deadlineInMs: number | null;
  readonly input: string;
  /** The number of the run's first call; more than 0 after continue-as-new. */
  readonly firstSeq: number;
  readonly history: readonly RecordedStep[];
  /** Of a run of a schedule. */
  readonly schedule: ScheduleTick | undefined;
}

/** The moment for which a schedule runs a workflow. */
export interface ScheduleTick {
  readonly name: string;
  readonly scheduledAt: Date;
}

/** One entry of a workflow's history, in the order of `recordVersion`. */
export interface RecordedStep {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  /** False for an intent whose step has no result yet. */
  readonly complete: boolean;
  readonly output: string | null;
  readonly error: string | null;
  /** Of an intent: runs of the body of which it is on record that nobody knows what became of them. */
  readonly attempts: number;
  readonly childId: string | null;
  readonly remainingMs: number | null;
  readonly recordVersion: number;
}

export interface OwnedWorkflow {
  readonly workflowId: string;
  readonly token: string;
  readonly recordVersion: number;
}

export interface StoreHints {
  /** A control operation changed this workflow. */
  readonly onControl: (workflowId: string) => void;
  /** These workflows have outcomes; null: any may have. */
  readonly onOutcomes: (workflowIds: readonly string[] | null) => void;
  /** These workflows may have got a message, or set an event; null: any may have. */
  readonly onMessages: (workflowIds: readonly string[] | null) => void;
  /** These workflows may have been asked something; null: any may have. */
  readonly onQueries: (workflowIds: readonly string[] | null) => void;
  /** Something was written to streams of these, or they have ended; null: any may have. */
  readonly onStreams: (workflowIds: readonly string[] | null) => void;
  /** There may be an event to deliver. */
  readonly onOutbox: () => void;
  /** There may be something to claim. */
  readonly onWork: () => void;
  /** Schedules were changed. */
  readonly onSchedules: () => void;
  /** Hints may have been lost: whoever waits must look. */
  readonly onGap: () => void;
}
