import type { WorkflowContext } from '../api/context.js';
import { WriteRefusedError, type StepNondeterminismError } from '../errors/workflow-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RollbackCause } from '../store/rollback-store.js';
import type {
  Denied,
  NextRun,
  OutcomeRecord,
  Ownership,
  RecordedStep,
  StepKind,
  StepRecord,
  SuspendAnswer,
  Wait,
  WriteAnswer,
} from '../store/store.js';
import type { BlockCode } from './attention-codes.js';
import type { CompensationBody } from './compensation-body.js';
import { Compensations, IN_FLIGHT_MS } from './compensations.js';
import { startDecodingResult } from './decoding.js';
import type { StepDefinition, WorkflowDefinition } from './definitions.js';
import { Departure } from './departure.js';
import type { ExecutionEnd, ExecutionHost, RunningExecution } from './execution-host.js';
import * as why from './execution-errors.js';
import type { ExecutionStart } from './execution-start.js';
import { enterHistory } from './history-limit.js';
import { InOrder } from './in-order.js';
import { failureOf, hasOpenStep, successOf } from './outcome-record.js';
import { OpenCalls, type OpenCall } from './open-calls.js';
import { Replay, Turnstile } from './replay.js';
import { LATE_CODE_MS, rollBack, rollbackRecordOf, type RollbackRecord } from './rollback.js';
import { runStep } from './run-step.js';
import { runInScope } from './scope.js';
import { within } from './timer.js';
import { workflowContext } from './workflow-context.js';

/**
 * One run of one workflow, from gaining ownership to giving it up.
 *
 * Whatever ends it — outcome, loss of ownership, block, giving back — goes through {@link Execution.#leave}: from then on
 * every durable call throws, the signal has fired, and nothing is written. That is sticky: code that swallows the error
 * meets it again at its next call.
 */
export class Execution implements RunningExecution {
  readonly definition: WorkflowDefinition;
  readonly ownership: Ownership;
  readonly attempt: number;
  readonly writeOrder = new InOrder();
  readonly host: ExecutionHost;
  readonly runtime: Runtime;
  readonly #start: ExecutionStart;
  readonly #replay: Replay;
  /** Undefined: this execution runs the workflow. */
  readonly #rollback: RollbackRecord | undefined;
  #compensations: Compensations | undefined;
  /** The workflow has failed, and is to be rolled back: nothing more is begun. */
  #isFrozen = false;
  /** The deadline has passed: nothing is done that is not on record. */
  #isTimedOut = false;
  readonly #turnstile: Turnstile;
  readonly #open: OpenCalls;
  /** While the store is asked to suspend this execution. */
  #suspending: Promise<void> | undefined;
  /** What is still open is never answered, so that no code of the workflow runs, not even a `finally`. */
  #isMute = false;
  readonly #departure = new Departure();
  #state: 'running' | 'ending' | 'over' = 'running';
  #nextSeq: number;
  #requeues: number;
  #cancelDeadline: (() => void) | undefined;

  constructor(host: ExecutionHost, start: ExecutionStart) {
    this.host = host;
    this.runtime = host.runtime;
    this.#turnstile = new Turnstile(host.runtime);
    this.#open = new OpenCalls(host.runtime);
    this.#start = start;
    this.definition = start.definition;
    this.ownership = start.ownership;
    this.attempt = start.attempt;
    this.#requeues = start.requeues;
    this.#nextSeq = start.firstSeq;
    this.#rollback = rollbackRecordOf(start.history);
    this.#replay = new Replay(host.runtime, this.#rollback?.before ?? start.history, (next) => {
      this.#block(why.otherPath(this.workflowId, next, 'the code stands still without asking for it'));
    });
  }

  get workflowId(): string {
    return this.ownership.workflowId;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Made when somebody asks, as most workflows have nothing to undo. */
  get compensations(): Compensations {
    return (this.#compensations ??= new Compensations());
  }

  get isRollback(): boolean {
    return this.#rollback !== undefined;
  }

  /** Fires when this execution may no longer write. Made when somebody asks. */
  get signal(): AbortSignal {
    return this.#departure.signal;
  }

  readonly onGone = (callback: (reason: Error) => void): (() => void) => this.#departure.on(callback);

  get ageMs(): number {
    return this.#open.ageMs;
  }

  context(): WorkflowContext {
    return workflowContext(this, this.#start.schedule);
  }

  /** Runs the workflow's function and records what comes of it. Never rejects. */
  run(): Promise<void> {
    return this.#runToEnd().catch(this.blockUnrecordable.bind(this));
  }

  /** What came of the workflow, or of a step of it, cannot be turned into something to record. */
  blockUnrecordable(error: unknown): void {
    this.block(...why.unrecordable(error));
  }

  async #runToEnd(): Promise<void> {
    const { definition, self, input, deadlineInMs } = this.#start;
    let args: unknown[];
    try {
      const decoded = this.host.serializer.decode(input);
      args = (decoded instanceof Promise ? await decoded : decoded) as unknown[];
    } catch (error) {
      this.block('INPUT_UNREADABLE', why.INPUT_UNREADABLE, why.asError(error));
      return;
    }
    const run = (): unknown =>
      runInScope({ execution: this, step: undefined }, () => definition.body.apply(self, args));
    if (this.#rollback !== undefined) {
      const outcome = await rollBack(this, this.#rollback, this.#replay, run);
      if (outcome !== undefined) await this.#finish(outcome);
      return;
    }
    if (deadlineInMs !== null) {
      const timeOut = (): void => void this.#timeOut().catch(this.blockUnrecordable.bind(this));
      this.#cancelDeadline = this.runtime.startTimer(deadlineInMs, timeOut);
    }
    let outcome: OutcomeRecord;
    try {
      const value = await run();
      if (!this.isRunning) return;
      const success = successOf(definition, value, this.host.serializer);
      outcome = success instanceof Promise ? await success : success;
    } catch (thrown) {
      outcome = await failureOf(thrown, this.host.serializer);
    }
    // What the code comes to in a replay whose deadline has passed is not in time: the timeout has the last word.
    if (!this.isRunning || this.#isTimedOut || (deadlineInMs ?? 1) <= 0) return;
    const left = this.#replay.isOver ? undefined : await this.#replay.end();
    if (left !== undefined) this.#block(why.otherPath(this.workflowId, left, 'the code ended without asking for it'));
    else if (outcome.error === null || !this.mayHaveToUndo) await this.#finish(outcome);
    else await this.beginRollback('failed', outcome.error);
  }

  /** Whether there is something to undo, or the code has not come far enough to say. */
  get mayHaveToUndo(): boolean {
    return !this.#replay.isFollowed || this.#compensations?.areNeeded === true;
  }

  async beginRollback(cause: RollbackCause, error: string): Promise<void> {
    if (this.#state !== 'running' || this.#isFrozen) return;
    this.#isFrozen = true;
    await this.compensations.settled(IN_FLIGHT_MS, this);
    if (!this.isRunning) return;
    this.#isMute = true;
    // The deadline may have passed before a replay has come to the last number on record.
    const rollback = { seq: Math.max(this.#nextSeq, this.#replay.lastSeq + 1), cause, error };
    const write = (): Promise<WriteAnswer> => this.host.store.beginRollback(this.ownership, rollback);
    await this.#end(why.rollsBack(), { kind: 'rolling-back' }, write);
  }

  /** Ownership is gone, as somebody has found out: park. */
  lose(reason = 'cancelled, taken over, given back or deleted'): void {
    if (this.#state === 'over') return;
    this.#leave(why.ownershipLost(this.workflowId, reason), { kind: 'parked' });
  }

  /** The executor shuts down: another one may go on at once. */
  async giveBack(): Promise<void> {
    if (this.#state !== 'running') return;
    this.#leave(why.ownershipLost(this.workflowId, 'its executor is shutting down'), { kind: 'given-back' });
    await this.#giveOver(() => this.host.store.release(this.ownership, { to: 'ENQUEUED', unspendAttempt: true }));
  }

  block(
    attention: BlockCode,
    detail: string,
    error: Error,
    write = () => this.host.store.release(this.ownership, { to: 'BLOCKED', attention, detail }),
  ): void {
    if (this.#state === 'over') return;
    this.#leave(error, { kind: 'blocked' });
    void this.#giveOver(write);
  }

  // Durable calls ------------------------------------------------------------------------------------------------

  call<Result>(work: (open: OpenCall) => Promise<Result>): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      if (this.#state !== 'running') {
        if (!this.#isMute) reject(this.#departure.reason);
        return;
      }
      if (!this.#isFrozen) this.#open.call(work, { resolve, reject, isMute: () => this.#isMute });
    });
    promise.catch(() => undefined);
    return promise;
  }

  waiting<Result>(wait: Wait, until: Promise<Result>, dueInMs = Infinity): Promise<Result> {
    return this.#open.waiting(wait, until, dueInMs);
  }

  /** Whether it has done nothing but wait for `sinceMs`, and no moment that it waits for comes within `untilMs`. */
  isIdle(sinceMs: number, untilMs: number): boolean {
    return this.#state === 'running' && this.#suspending === undefined && this.#open.isIdle(sinceMs, untilMs);
  }

  /** Unloads this execution, unless something comes that it waits for. Never rejects. */
  suspend(): Promise<void> {
    return (this.#suspending ??= this.#suspend().finally(() => {
      this.#suspending = undefined;
    }));
  }

  async #suspend(): Promise<void> {
    let answer: SuspendAnswer;
    try {
      answer = await this.write(this.host.store.suspend(this.ownership, this.#open.waits));
    } catch {
      return;
    }
    if (this.#state !== 'running') return;
    switch (answer.kind) {
      case 'suspended':
        this.#isMute = true;
        this.#leave(why.ownershipLost(this.workflowId, 'suspended'), { kind: 'suspended' });
        break;
      case 'refused':
      case 'not-now':
        if (answer.kind === 'refused') why.warn(this, 'The database refuses to suspend a workflow.', answer.error);
        // What has come reaches it by its own way; if that takes long, it is asked again.
        this.#open.restartIdle();
        break;
      default:
        this.#giveUp(answer);
    }
  }

  enter(kind: StepKind, name: string, childId?: string): ReturnType<RunningExecution['enter']> {
    const seq = this.#nextSeq++;
    // The way out of a long history is open at its limit, too.
    if (kind !== 'continue') enterHistory(seq - this.#start.firstSeq, this.workflowId, this.host.logger);
    const recorded = this.#replay.ask(seq);
    if (recorded === undefined) return { seq, recorded };
    const found = why.otherCall(recorded, kind, name, childId);
    if (found === undefined) return { seq, recorded };
    const error = why.otherPath(this.workflowId, recorded, found);
    this.#block(error);
    throw error;
  }

  peek(): { readonly recorded: RecordedStep | undefined; readonly isNew: boolean } {
    return { recorded: this.#replay.find(this.#nextSeq), isNew: this.#nextSeq > this.#replay.lastSeq };
  }

  async replayed(recorded: RecordedStep): Promise<unknown> {
    const result = startDecodingResult(this.host.serializer, recorded);
    await this.#replay.turnOf(recorded, result.done);
    this.#open.noteProgress();
    return result.take();
  }

  readonly replayOver = (): Promise<void> | undefined => {
    if (this.isRollback || this.#isTimedOut) return new Promise(() => undefined);
    return this.#replay.isOver ? undefined : this.#replay.over();
  };

  onRollback(body: CompensationBody): void {
    this.assertRunning();
    this.compensations.add(body, this.#nextSeq);
  }

  readonly whenReplayed = (): Promise<void> => this.#replay.whenAtRest();

  async checkpoint(record: StepRecord): Promise<Error | undefined> {
    this.assertRunning();
    let answer: WriteAnswer;
    try {
      answer = await this.host.store.checkpoint(this.ownership, record);
    } catch (error) {
      return this.#unanswered(error);
    }
    if (answer.kind === 'refused') return answer.error;
    if (answer.kind !== 'written') this.denied(answer);
    this.host.checkpointed();
    const turn = this.progress();
    if (turn !== undefined) await turn;
    return undefined;
  }

  get leavesUnknown(): boolean {
    return this.#open.leaveUnknown;
  }

  get stalledMs(): number {
    return this.#open.stalledMs;
  }

  progress(ready?: Promise<unknown>): Promise<void> | undefined {
    this.#open.noteProgress();
    this.#requeues = 0;
    const turn = this.#turnstile.pass(ready);
    if (turn !== undefined) return turn.then(this.assertRunning.bind(this));
    this.assertRunning();
    return undefined;
  }

  write<Answer>(answered: Promise<Answer>): Promise<Answer> {
    return answered.catch(this.#unanswered.bind(this));
  }

  /** What became of the write is for the next owner to find. */
  #unanswered(error: unknown): never {
    why.tellOfRefusal(this, error);
    this.lose('the database refuses what it asks, the store was closed, or its pool was ended');
    throw why.asError(error);
  }

  denied(answer: Denied): never {
    this.#giveUp(answer);
    throw this.#departure.reason;
  }

  #giveUp(answer: Denied): void {
    switch (answer.kind) {
      case 'lost':
      case 'missing':
        this.lose(answer.kind === 'missing' ? 'deleted' : undefined);
        break;
      case 'nondeterminism':
        this.#block(why.recordedOtherwise(this.workflowId, answer.found));
        break;
      case 'conflict':
        this.#leave(why.ownershipLost(this.workflowId, 'requeued, as another writer kept changing it'), {
          kind: 'requeued',
          requeues: this.#requeues + 1,
        });
        break;
    }
  }

  runStep(definition: StepDefinition, self: unknown, args: unknown[]): Promise<unknown> {
    return this.call((open) => runStep(this, open, definition, self, args));
  }

  /**
   * The lease is judged by the monotonic clock since the last acknowledged heartbeat; if it may have lapsed, the database
   * says who owns the workflow. A process that was paused must not charge a card before it finds out what happened.
   */
  mayRunBody(): Promise<void> | undefined {
    this.assertRunning();
    // A body that starts while its execution is being unloaded would run for nothing.
    if (this.#suspending !== undefined) return this.#suspending.then(() => this.mayRunBody());
    return this.host.leaseIsFresh ? undefined : this.#verify();
  }

  assertRunning(): void {
    if (this.#state !== 'running') throw this.#departure.reason;
  }

  async #verify(): Promise<void> {
    if (!(await this.write(this.host.store.verifyOwnership(this.ownership)))) this.lose();
    this.assertRunning();
  }

  // Ends -------------------------------------------------------------------------------------------------------------

  async #timeOut(): Promise<void> {
    // Before the code has come to rest, nobody knows what there is to undo.
    this.#isTimedOut = true;
    const error = why.timedOut(this.workflowId);
    const outcome = await failureOf(error, this.host.serializer);
    await within(this.runtime, this.#replay.whenFollowed(), LATE_CODE_MS);
    if (this.mayHaveToUndo) await this.beginRollback('timed-out', outcome.error ?? '');
    else await this.#finish(outcome, error);
  }

  #finish(found: OutcomeRecord, reason?: Error): Promise<void> {
    // Before a rollback, steps are waited for: what the code comes to meanwhile counts no more.
    if (this.#isFrozen) return Promise.resolve();
    // Also a step of an earlier execution that this one has not come to: its time was up before. A rollback says so itself.
    const mayBeOpen = this.leavesUnknown || (this.#rollback === undefined && hasOpenStep(this.#start.history));
    const outcome = mayBeOpen ? { ...found, attention: found.attention ?? 'OUTCOME_UNKNOWN' } : found;
    const end = { kind: 'completed', outcome, sentAt: this.runtime.now() } as const;
    return this.#end(reason, end, () => this.host.store.complete(this.ownership, outcome));
  }

  continueWith(input: string): Promise<void> {
    if (this.#isFrozen) return new Promise(() => undefined);
    // Every number that has been given out is below, also that of a call which is still open.
    const run: NextRun = { input, firstSeq: this.#nextSeq, unreceived: this.#open.unreceived };
    const reason = why.continuesAsNew();
    return this.#end(reason, { kind: 'continued' }, () => this.host.store.continueAsNew(this.ownership, run));
  }

  /** Writes the end. Calls that are still open are rejected with `reason`; default: that the workflow has returned. */
  async #end(reason: Error | undefined, end: ExecutionEnd, write: () => Promise<WriteAnswer>): Promise<void> {
    if (this.#state !== 'running') return;
    this.#state = 'ending';
    this.#silence(reason);
    let answer: WriteAnswer;
    try {
      answer = await write();
    } catch {
      this.lose('the store was closed');
      return;
    }
    switch (answer.kind) {
      case 'written':
        this.#leave(reason, end);
        break;
      case 'refused': {
        const error = new WriteRefusedError('The database refuses the end of the execution.', { cause: answer.error });
        if (end.kind === 'completed') await this.#finishRefused(error);
        else this.block('WRITE_REFUSED', error.message, error);
        break;
      }
      default:
        this.#giveUp(answer);
    }
  }

  async #finishRefused(error: WriteRefusedError): Promise<void> {
    let answer: WriteAnswer;
    try {
      answer = await this.write(this.host.store.complete(this.ownership, await failureOf(error, this.host.serializer)));
    } catch {
      return;
    }
    if (answer.kind === 'written') this.#leave(error, { kind: 'parked' });
    else this.block('WRITE_REFUSED', 'The database refuses the outcome, and its error too.', error);
  }

  #block(error: StepNondeterminismError): void {
    this.block('NONDETERMINISM', error.message, error);
  }

  #giveOver(write: () => Promise<unknown>): Promise<unknown> {
    // The store was closed, or refuses: the row stays owned, and is given back or recovered like that of a dead process.
    return write().catch(why.warn.bind(null, this, 'A workflow could not be released.'));
  }

  /** From here on nothing is called or written, and whatever was open is rejected. */
  #silence(reason: Error | undefined): void {
    this.#departure.decide(reason);
    this.#isMute ||= this.isRollback;
    this.#cancelDeadline?.();
    this.#replay.stop();
    if (this.#isMute) {
      this.#open.clear();
    } else if (this.#open.size > 0) {
      this.host.logger.info('Durable calls were still open when their execution ended.', {
        workflowId: this.workflowId,
        open: this.#open.size,
      });
      this.#open.rejectAll(this.#departure.reason);
    }
    this.#departure.announce();
  }

  #leave(reason: Error | undefined, end: ExecutionEnd): void {
    const silent = this.#state === 'ending';
    this.#state = 'over';
    if (!silent) this.#silence(reason);
    this.host.ended(this, end);
  }
}
