import type { WorkflowContext } from '../api/context.js';
import type { Logger } from '../api/logger.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import type { StartOptions } from '../api/workflow-options.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RollbackCause } from '../store/rollback-store.js';
import type {
  Denied,
  Ownership,
  RecordedStep,
  StepKind,
  StepRecord,
  Wait,
  WorkflowStart,
  WorkflowStore,
} from '../store/store.js';
import type { TransactionStore } from '../store/transaction-store.js';
import type { BlockCode } from './attention-codes.js';
import type { CompensationBody } from './compensation-body.js';
import type { Compensations } from './compensations.js';
import type { StepDefinition, WorkflowDefinition } from './definitions.js';
import type { InOrder } from './in-order.js';
import type { OpenCall } from './open-calls.js';
import type { Outcome } from './outcome.js';
import type { Serializer } from './serializer.js';
import type { Soon } from './soon.js';
import type { ArrivalWatches } from './watch.js';

/** How an execution came to its end. */
export type ExecutionEnd =
  /** `sentAt`: when that was sent to the store, by the monotonic clock. */
  | { readonly kind: 'completed'; readonly outcome: Outcome; readonly sentAt: number }
  /** Ownership is lost: whoever waits here waits for what the owner records. */
  | { readonly kind: 'parked' }
  /** Unloaded until something comes that it waits for. */
  | { readonly kind: 'suspended' }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'given-back' }
  /** The workflow begins anew with another input, in whichever executor claims it. */
  | { readonly kind: 'continued' }
  /** The workflow has failed or run out of time, and is to be rolled back, in whichever executor claims it. */
  | { readonly kind: 'rolling-back' }
  /** Version conflicts without end: to be claimed again after a while, with the count on the wake-up. */
  | { readonly kind: 'requeued'; readonly requeues: number };

/** What the code that a workflow calls needs of the execution that it runs in. */
export interface RunningExecution {
  readonly workflowId: string;
  readonly definition: WorkflowDefinition;
  readonly ownership: Ownership;
  readonly host: ExecutionHost;
  /** Time and chance. */
  readonly runtime: Runtime;
  /** How long this execution has been here, in milliseconds. */
  readonly ageMs: number;
  /** How long nothing has been recorded, without everything waiting, in milliseconds. */
  readonly stalledMs: number;
  /** Ownership is gone, as somebody has found out: park. */
  lose(reason?: string): void;
  /** False once nothing can be called any more. */
  readonly isRunning: boolean;
  /** Whether a step is under way whose intent is on record: its outcome would be unknown. */
  readonly leavesUnknown: boolean;
  /** Brings entries of streams, and events of the outbox, to the store in the order of the calls. */
  readonly writeOrder: InOrder;
  context(): WorkflowContext;
  /** @throws OwnershipLostError or why else nothing can be called any more. */
  assertRunning(): void;
  /** Before a body runs: resolves, or is undefined, when this execution still owns its workflow; throws when it does not. */
  mayRunBody(): Promise<void> | undefined;
  /** Stops the workflow until a person decides, and lists it with its reason. `write`: how that is recorded; default: by a release. */
  block(attention: BlockCode, detail: string, error: Error, write?: () => Promise<unknown>): void;
  /** The same, when what came of a call cannot be encoded. */
  blockUnrecordable(error: unknown): void;
  /** It rolls the workflow back: what is not on record is never answered. */
  readonly isRollback: boolean;
  /** What there is to undo, as far as the code has come. */
  readonly compensations: Compensations;
  /** Whether there is something to undo, or the code has not come far enough to say. */
  readonly mayHaveToUndo: boolean;
  /**
   * Gives the workflow up, to be rolled back and then to end with this encoded error. Compensable steps that are under way are waited
   * for, though not for long: nobody would know their end. Never rejects.
   */
  beginRollback(cause: RollbackCause, error: string): Promise<void>;
  /** Registers a function that is run at a rollback, at this place of the code. */
  onRollback(body: CompensationBody): void;
  runStep(definition: StepDefinition, self: unknown, args: unknown[]): Promise<unknown>;
  /**
   * Wraps one durable call. Its promise is rejected when the execution ends, whatever the call is waiting for; and a
   * rejection that nobody awaits never reaches the process.
   */
  call<Result>(work: (open: OpenCall) => Promise<Result>): Promise<Result>;
  /** Numbers a call and finds what is recorded for it. To be called synchronously with the user's call. */
  enter(
    kind: StepKind,
    name: string,
    /** For the outcome of a workflow: which one. */
    childId?: string,
  ): { readonly seq: number; readonly recorded: RecordedStep | undefined };
  /** What is recorded for the number that the next call will take. `isNew`: nothing is recorded from there on. */
  peek(): { readonly recorded: RecordedStep | undefined; readonly isNew: boolean };
  /** Returns, or throws, a recorded result when its turn has come. */
  replayed(recorded: RecordedStep): Promise<unknown>;
  /** Waits until everything recorded has been handed out; undefined when it has. */
  replayOver(): Promise<void> | undefined;
  /** Resolves when everything recorded has been handed out and the code has come to rest: for who only looks. */
  whenReplayed(): Promise<void>;
  /** Records a result and lets it reach the workflow in its order. Returns the error when the database refuses it. */
  checkpoint(record: StepRecord): Promise<Error | undefined>;
  /**
   * A write succeeded: what it brought may reach the workflow, when `ready` has resolved, unless the execution has ended meanwhile.
   * Undefined: at once.
   */
  progress(ready?: Promise<unknown>): Promise<void> | undefined;
  /** Waits for the store. When that is closed first, the execution is over, and this throws. */
  write<Answer>(answered: Promise<Answer>): Promise<Answer>;
  /** The ownership check failed. */
  denied(answer: Denied): never;
  /** Ends the run; the workflow begins anew with this input. Nothing can be called from then on. Never rejects. */
  continueWith(input: string): Promise<void>;
  /**
   * Says what a durable call waits for until `until` settles. When all open calls of an execution do nothing but wait, it can
   * be suspended. `dueInMs`: when it ends by itself at the latest.
   */
  waiting<Result>(wait: Wait, until: Promise<Result>, dueInMs?: number): Promise<Result>;
  /** Fires when nothing can be called any more. */
  readonly signal: AbortSignal;
  /** Calls back once, at the same moment. Returns how to take that back. */
  onGone(callback: (reason: Error) => void): () => void;
}

/** What an execution needs of the engine that runs it. */
export interface ExecutionHost {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  /** Where bodies of transactions run. */
  readonly transactions: TransactionStore;
  readonly serializer: Serializer;
  readonly logger: Logger;
  /** Who waits here for messages and events. */
  readonly arrivals: ArrivalWatches;
  /** How the executions here answer questions. */
  readonly queries: {
    add(execution: RunningExecution, name: string, answer: (...args: unknown[]) => unknown): void;
  };
  /** False when the executor's lease may have lapsed: ownership is then verified before a body runs. */
  readonly leaseIsFresh: boolean;
  /** The database's clock as far as it is known here, milliseconds since 1970. */
  clockMs(): number;
  /** A result has been recorded. */
  checkpointed(): void;
  /** The execution is over: its slot is free. */
  ended(execution: RunningExecution, end: ExecutionEnd): void;
  /** Waits for the outcome of a workflow, wherever it runs; at most as long as the execution that asks is there. */
  waitForOutcome(workflowId: string, waiting: RunningExecution): Promise<Outcome>;
  /** Checks the arguments and options of a child, and encodes what it is to be started with. */
  prepare(
    definition: WorkflowDefinition,
    args: readonly unknown[],
    options: StartOptions,
    workflowId: string,
  ): Soon<WorkflowStart>;
  /** Runs a child that was created with its parent's checkpoint. */
  runChild(definition: WorkflowDefinition, start: WorkflowStart, ownership: Ownership, sentAt: number): Promise<void>;
  /** The name under which an object is registered for a workflow. */
  instanceNameOf(definition: WorkflowDefinition, self: unknown): string | undefined;
  handleOf(workflowId: string): WorkflowHandle;
}
