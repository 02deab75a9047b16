import type { Logger } from '../api/logger.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import type { StartOptions } from '../api/workflow-options.js';
import { HoldfastClosedError } from '../errors/usage-errors.js';
import { WorkflowIdConflictError, WriteRefusedError } from '../errors/workflow-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ClaimedWorkflow, ExecutorIdentity, Ownership, WorkflowStart, WorkflowStore } from '../store/store.js';
import type { TransactionStore } from '../store/transaction-store.js';
import type { Catalog } from './catalog.js';
import type { WorkflowDefinition } from './definitions.js';
import { newEngineCounters } from './engine-counters.js';
import { Execution } from './execution.js';
import type { ExecutionStart } from './execution-start.js';
import type { ExecutionEnd, ExecutionHost, RunningExecution } from './execution-host.js';
import { NO_TRANSACTIONS } from './no-transactions.js';
import type { Outcome } from './outcome.js';
import type { OutcomeWaiter } from './outcome-waiter.js';
import { QueryHandlers } from './query-handlers.js';
import { prepareStart } from './prepare-start.js';
import { runOutsideScope } from './scope.js';
import type { Serializer } from './serializer.js';
import type { Soon } from './soon.js';
import type { ArrivalWatches } from './watch.js';

/** What the engine needs to know of the executor it works for. */
export interface ExecutorState {
  readonly identity: ExecutorIdentity;
  readonly appVersion: string;
  /** By the monotonic clock since the last acknowledged heartbeat. */
  readonly leaseIsFresh: boolean;
  /** Milliseconds after which what was started or claimed may have been given back, as nobody ran it here. */
  readonly lateMs: number;
  /** Whether what this token owns was found owned and not run here, and is on its way back to the others. */
  isGivingBack(token: string): boolean;
  clockMs(): number;
  /** A workflow that kept meeting other writers is to be claimed again after a while. */
  requeue(ownership: Ownership, requeues: number): void;
  /** An execution has ended: another one has room. */
  slotFreed(): void;
  /** There may be something to claim. */
  wake(): void;
}

export interface EngineOptions {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  /** Default: none can be run. */
  readonly transactions?: TransactionStore;
  readonly serializer: Serializer;
  readonly logger: Logger;
  readonly catalog: Catalog;
  readonly executor: ExecutorState;
  readonly waiter: OutcomeWaiter;
  readonly arrivals: ArrivalWatches;
  readonly handleOf: (workflowId: string) => WorkflowHandle;
}

/** Starts workflows, runs executions, and knows which run here. */
export class Engine implements ExecutionHost {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  readonly transactions: TransactionStore;
  readonly serializer: Serializer;
  readonly logger: Logger;
  readonly arrivals: ArrivalWatches;
  readonly queries = new QueryHandlers();
  readonly handleOf: (workflowId: string) => WorkflowHandle;
  readonly catalog: Catalog;
  readonly counters = newEngineCounters();
  readonly #executor: ExecutorState;
  readonly #waiter: OutcomeWaiter;
  readonly #running = new Map<string, Execution>();
  /** Tokens whose reply came late, and of which the database is asked whether they still own. */
  readonly #arriving = new Set<string>();
  readonly #idle = new Set<() => void>();
  #startsUnderWay = 0;
  #accepting = true;
  #givingBack = false;

  constructor(options: EngineOptions) {
    this.runtime = options.runtime;
    this.store = options.store;
    this.transactions = options.transactions ?? NO_TRANSACTIONS;
    this.serializer = options.serializer;
    this.logger = options.logger;
    this.arrivals = options.arrivals;
    this.handleOf = options.handleOf;
    this.catalog = options.catalog;
    this.#executor = options.executor;
    this.#waiter = options.waiter;
    for (const { engines } of this.catalog.definitions) engines.add(this);
  }

  get leaseIsFresh(): boolean {
    return this.#executor.leaseIsFresh;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  clockMs(): number {
    return this.#executor.clockMs();
  }

  /** The execution of this workflow that runs here. */
  runningExecution(workflowId: string): Execution | undefined {
    return this.#running.get(workflowId);
  }

  /** Whether the execution of this token runs here, or is about to. */
  isHere(workflowId: string, token: string): boolean {
    return this.#arriving.has(token) || this.#running.get(workflowId)?.ownership.token === token;
  }

  runningExecutions(): Iterable<Execution> {
    return this.#running.values();
  }

  /** Starts a workflow, or attaches to the one that has the ID. */
  async start(
    definition: WorkflowDefinition,
    options: StartOptions,
    args: readonly unknown[],
  ): Promise<WorkflowHandle> {
    this.assertAccepting();
    const workflowId = options.workflowId ?? this.runtime.sortableUuid();
    const start = await this.prepare(definition, args, options, workflowId);
    this.assertAccepting();
    this.#startsUnderWay += 1;
    try {
      await this.#startPrepared(definition, start);
    } finally {
      this.#startsUnderWay -= 1;
      this.#tellIfIdle();
    }
    return this.handleOf(workflowId);
  }

  async #startPrepared(definition: WorkflowDefinition, start: WorkflowStart): Promise<void> {
    const { workflowId } = start;
    const { identity: executor, appVersion } = this.#executor;
    const sentAt = this.runtime.now();
    const answer = await this.store.start({ ...start, executor, appVersion, token: this.runtime.randomUuid() });
    switch (answer.kind) {
      case 'started':
        await this.#runFresh(definition, start, answer.ownership, sentAt);
        break;
      case 'exists':
        if (answer.name !== definition.name) {
          throw new WorkflowIdConflictError(
            `Workflow ID "${workflowId}" belongs to a workflow named "${answer.name}", not "${definition.name}". Choose another ID.`,
          );
        }
        break;
      case 'lost':
        // Started, and taken over before the reply arrived: it runs elsewhere.
        break;
      case 'refused':
        throw new WriteRefusedError(`The database refuses to start workflow "${workflowId}".`, { cause: answer.error });
    }
  }

  /**
   * Whether what was started or claimed is still to be run here. If the reply took long, the comparison of rows may have found it
   * owned and not run. So each looks for the other: what is being given back is left alone, and what is about to run is not given
   * back. Else the answer that it is owned could be older than its giving back, and the execution would not know, with a lease
   * that is fresh. Of what is answered with true, {@link adopt} has to follow.
   */
  mayRun(ownership: Ownership, sentAt: number): Soon<boolean> {
    if (this.#executor.isGivingBack(ownership.token)) return false;
    if (this.runtime.now() - sentAt < this.#executor.lateMs) return true;
    return this.#isStillOwned(ownership);
  }

  async #isStillOwned(ownership: Ownership): Promise<boolean> {
    const { token } = ownership;
    this.#arriving.add(token);
    let isOwned = false;
    try {
      isOwned = await this.store.verifyOwnership(ownership);
    } finally {
      if (!isOwned) this.#arriving.delete(token);
    }
    return isOwned;
  }

  /** Runs what was claimed. The claim fenced whatever ran it before, here too. */
  adopt(claimed: ClaimedWorkflow, requeues: number): void {
    const definition = this.catalog.find(claimed.name);
    let self: unknown;
    try {
      if (definition === undefined) throw new TypeError('Claimed a workflow of a name that is not registered.');
      self = this.catalog.selfOf(definition, claimed.instance);
    } catch {
      // Another executor may know it. That this one does not is not the workflow's fault, so it is not an attempt.
      this.#arriving.delete(claimed.ownership.token);
      this.logger.error('A claimed workflow cannot be run here; it is given back.', {
        workflowId: claimed.ownership.workflowId,
        workflow: claimed.name,
      });
      void this.store
        .release(claimed.ownership, { to: 'DELAYED', wakeInMs: UNRUNNABLE_DELAY_MS, unspendAttempt: true })
        .catch(() => undefined);
      return;
    }
    const { ownership, input, firstSeq, attempts: attempt, deadlineInMs, history, schedule } = claimed;
    this.#run({ definition, ownership, self, input, firstSeq, attempt, deadlineInMs, history, schedule, requeues });
  }

  instanceNameOf(definition: WorkflowDefinition, self: unknown): string | undefined {
    return this.catalog.instanceNameOf(definition, self);
  }

  prepare(
    definition: WorkflowDefinition,
    args: readonly unknown[],
    options: StartOptions,
    workflowId: string,
  ): Soon<WorkflowStart> {
    // Before anything is written: what is started here must also be able to run here.
    this.catalog.assertRegistered(definition);
    this.catalog.selfOf(definition, options.instance ?? null);
    return prepareStart(definition, args, options, workflowId, this.serializer);
  }

  runChild(definition: WorkflowDefinition, start: WorkflowStart, ownership: Ownership, sentAt: number): Promise<void> {
    return this.#runFresh(definition, start, ownership, sentAt);
  }

  waitForOutcome(workflowId: string, waiting: RunningExecution): Promise<Outcome> {
    return this.#waiter.wait(workflowId, {
      runsHere: this.#running.has(workflowId),
      onGone: (callback) => waiting.onGone(callback),
    });
  }

  checkpointed(): void {
    this.counters.checkpoints += 1;
  }

  ended(execution: RunningExecution, end: ExecutionEnd): void {
    const { workflowId } = execution;
    if (this.#running.get(workflowId) === execution) {
      this.#running.delete(workflowId);
      this.#executor.slotFreed();
    }
    this.counters.ends[end.kind] += 1;
    switch (end.kind) {
      case 'completed':
        this.counters.outcomes[end.outcome.error === null ? 'success' : 'error'] += 1;
        this.#waiter.settle(workflowId, end.outcome, end.sentAt);
        // Who waits here for an event of it waits in vain.
        this.arrivals.events.check([workflowId]);
        this.store.announceOutcome(workflowId);
        break;
      case 'requeued':
        this.#executor.requeue(execution.ownership, end.requeues);
        break;
      case 'continued':
      case 'rolling-back':
        this.#executor.wake();
        break;
      case 'suspended':
        break;
      case 'parked':
      case 'blocked':
      case 'given-back':
        // Whoever waits here learns the outcome like everyone else.
        this.#waiter.check([workflowId]);
        break;
    }
    this.#tellIfIdle();
  }

  /** Starts nothing any more. */
  stopAccepting(): void {
    this.#accepting = false;
    for (const { engines } of this.catalog.definitions) engines.delete(this);
  }

  /** Resolves when nothing runs here, and nothing is about to. */
  async idle(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#idle.add(resolve);
      this.#tellIfIdle();
    });
  }

  /** Gives back what runs here, and from now on whatever is about to: the reply to a claim or start may be under way. */
  async giveBackAll(): Promise<void> {
    this.#givingBack = true;
    await Promise.all([...this.#running.values()].map((execution) => execution.giveBack()));
  }

  /** `sentAt`: when its start was sent, by the monotonic clock. Resolves when it runs, or has been found to run elsewhere. */
  async #runFresh(
    definition: WorkflowDefinition,
    start: WorkflowStart,
    ownership: Ownership,
    sentAt: number,
  ): Promise<void> {
    if (!(await this.mayRun(ownership, sentAt))) return;
    this.counters.started += 1;
    const self = this.catalog.selfOf(definition, start.instance);
    const { input, timeoutMs: deadlineInMs } = start;
    this.#run({ definition, ownership, self, input, firstSeq: 0, attempt: 1, deadlineInMs, history: [], requeues: 0 });
  }

  #run(start: ExecutionStart): void {
    const execution = new Execution(this, start);
    this.#arriving.delete(start.ownership.token);
    const before = this.#running.get(execution.workflowId);
    // One that is ending learns from its last write what became of it: it may have made way for this one itself.
    if (before?.isRunning === true) before.lose('taken over by a later execution in this process');
    if (this.#givingBack) {
      void execution.giveBack();
      return;
    }
    this.#running.set(execution.workflowId, execution);
    // A child must not run in the scope of the step or workflow that happened to start it.
    runOutsideScope(() => void execution.run());
  }

  #tellIfIdle(): void {
    if (this.#running.size > 0 || this.#startsUnderWay > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle.clear();
  }

  /** @throws HoldfastClosedError */
  assertAccepting(): void {
    if (!this.#accepting) throw new HoldfastClosedError('This Holdfast is closing: it starts nothing any more.');
  }
}

/** How long a workflow that was claimed and cannot be run here is left to others, in milliseconds. */
const UNRUNNABLE_DELAY_MS = 5_000;
