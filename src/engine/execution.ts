import type { WorkflowContext } from '../api/context.js';
import { WriteRefusedError, type StepNondeterminismError } from '../errors/workflow-errors.js';
import { codeOf } from '../errors/error-code.js';
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
import { startDecodingResult } from './decoding.js';
import type { StepDefinition, WorkflowDefinition } from './definitions.js';
import type { ExecutionEnd, ExecutionHost, RunningExecution } from './execution-host.js';
import * as why from './execution-errors.js';
import type { ExecutionStart } from './execution-start.js';
import { enterHistory } from './history-limit.js';
import { InOrder } from './in-order.js';
import { failureOf, successOf } from './outcome-record.js';
import { OpenCalls, type OpenCall } from './open-calls.js';
import { Replay, Turnstile } from './replay.js';
import { runStep } from './run-step.js';
import { runInScope } from './scope.js';
import { startTimer } from './timer.js';
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
  readonly #host: ExecutionHost;
  readonly #start: ExecutionStart;
  readonly #replay: Replay;
  readonly #turnstile = new Turnstile();
  readonly #open = new OpenCalls();
  /** While the store is asked to suspend this execution. */
  #suspending: Promise<void> | undefined;
  /** Suspended: what is still open is never answered, so that no code of the workflow runs, not even a `finally`. */
  #isUnloaded = false;
  readonly #onGone = new Set<(reason: Error) => void>();
  readonly #createdAt = performance.now();
  #state: 'running' | 'ending' | 'over' = 'running';
  /** Why nothing can be called any more. */
  #gone: Error | undefined;
  #isSilent = false;
  #controller: AbortController | undefined;
  #nextSeq: number;
  #requeues: number;
  #cancelDeadline: (() => void) | undefined;

  constructor(host: ExecutionHost, start: ExecutionStart) {
    this.#host = host;
    this.#start = start;
    this.definition = start.definition;
    this.ownership = start.ownership;
    this.attempt = start.attempt;
    this.#requeues = start.requeues;
    this.#nextSeq = start.firstSeq;
    this.#replay = new Replay(start.history, (next) => {
      this.#block(why.otherPath(this.workflowId, next, 'the code stands still without asking for it'));
    });
  }

  get workflowId(): string {
    return this.ownership.workflowId;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Fires when this execution may no longer write. Made when somebody asks. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isSilent) this.#controller.abort(this.#whyGone);
    }
    return this.#controller.signal;
  }

  onGone(callback: (reason: Error) => void): () => void {
    if (this.#isSilent) {
      callback(this.#whyGone);
      return () => undefined;
    }
    this.#onGone.add(callback);
    return () => {
      this.#onGone.delete(callback);
    };
  }

  get host(): ExecutionHost {
    return this.#host;
  }

  get ageMs(): number {
    return performance.now() - this.#createdAt;
  }

  context(): WorkflowContext {
    return workflowContext(this, this.#start.schedule);
  }

  /** Runs the workflow's function and records what comes of it. Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#runToEnd();
    } catch (error) {
      this.blockUnrecordable(error);
    }
  }

  /** What came of the workflow, or of a step of it, cannot be turned into something to record. */
  blockUnrecordable(error: unknown): void {
    this.block(...why.unrecordable(error));
  }

  async #runToEnd(): Promise<void> {
    const { definition, self, input, deadlineInMs } = this.#start;
    let args: unknown[];
    try {
      args = (await this.#host.serializer.decode(input)) as unknown[];
    } catch (error) {
      this.block(
        'INPUT_UNREADABLE',
        'The stored input cannot be decoded: see the error VALUE_UNREADABLE.',
        why.asError(error),
      );
      return;
    }
    if (deadlineInMs !== null) {
      this.#cancelDeadline = startTimer(deadlineInMs, () => {
        this.#timeOut().catch((error: unknown) => {
          this.blockUnrecordable(error);
        });
      });
    }
    let outcome: OutcomeRecord;
    try {
      const value = await runInScope({ execution: this, step: undefined }, () => definition.body.apply(self, args));
      if (!this.isRunning) return;
      outcome = await successOf(definition, value, this.#host.serializer);
    } catch (thrown) {
      if (!this.isRunning) return;
      outcome = await failureOf(thrown, this.#host.serializer);
    }
    const left = await this.#replay.end();
    if (left !== undefined) this.#block(why.otherPath(this.workflowId, left, 'the code ended without asking for it'));
    else await this.#finish(outcome);
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
    await this.#release({ to: 'ENQUEUED', unspendAttempt: true });
  }

  block(attention: string, detail: string, error: Error): void {
    if (this.#state === 'over') return;
    this.#leave(error, { kind: 'blocked' });
    void this.#release({ to: 'BLOCKED', attention, detail });
  }

  // Durable calls ------------------------------------------------------------------------------------------------

  call<Result>(work: (open: OpenCall) => Promise<Result>): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      if (this.#state !== 'running') {
        if (!this.#isUnloaded) reject(this.#whyGone);
        return;
      }
      const open: OpenCall = { reject };
      this.#open.add(open);
      work(open).then(
        (value) => {
          this.#open.remove(open);
          if (!this.#isUnloaded) resolve(value);
        },
        (error: unknown) => {
          this.#open.remove(open);
          // Whatever the step threw, also if that is no Error.
          if (!this.#isUnloaded) reject(error);
        },
      );
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
      answer = await this.write(this.#host.store.suspend(this.ownership, this.#open.waits));
    } catch {
      return;
    }
    if (this.#state !== 'running') return;
    switch (answer.kind) {
      case 'suspended':
        this.#isUnloaded = true;
        this.#leave(why.ownershipLost(this.workflowId, 'suspended'), { kind: 'suspended' });
        break;
      case 'refused':
      case 'not-now':
        if (answer.kind === 'refused') this.#warn('The database refuses to suspend a workflow.', answer.error);
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
    if (kind !== 'continue') enterHistory(seq - this.#start.firstSeq, this.workflowId, this.#host.logger);
    const recorded = this.#replay.find(seq);
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
    const result = startDecodingResult(this.#host.serializer, recorded);
    await this.#replay.turnOf(recorded, result.done);
    this.#open.noteProgress();
    return result.take();
  }

  readonly replayOver = (): Promise<void> | undefined => (this.#replay.isOver ? undefined : this.#replay.over());

  readonly whenReplayed = (): Promise<void> => this.#replay.whenAtRest();

  async checkpoint(record: StepRecord): Promise<Error | undefined> {
    this.assertRunning();
    let answer: WriteAnswer;
    try {
      answer = await this.#host.store.checkpoint(this.ownership, record);
    } catch (error) {
      throw this.#storeClosed(error);
    }
    if (answer.kind === 'refused') return answer.error;
    if (answer.kind !== 'written') this.denied(answer);
    this.#host.checkpointed();
    await this.progress();
    return undefined;
  }

  get leavesUnknown(): boolean {
    return this.#open.leaveUnknown;
  }

  get stalledMs(): number {
    return this.#open.stalledMs;
  }

  async progress(ready?: Promise<unknown>): Promise<void> {
    this.#open.noteProgress();
    this.#requeues = 0;
    const turn = this.#turnstile.pass(ready);
    if (turn !== undefined) await turn;
    this.assertRunning();
  }

  async write<Answer>(answered: Promise<Answer>): Promise<Answer> {
    try {
      return await answered;
    } catch (error) {
      throw this.#storeClosed(error);
    }
  }

  /** What became of the write is for the next owner to find. */
  #storeClosed(error: unknown): Error {
    this.lose('the store was closed');
    return why.asError(error);
  }

  denied(answer: Denied): never {
    this.#giveUp(answer);
    throw this.#whyGone;
  }

  #giveUp(answer: Denied): void {
    switch (answer.kind) {
      case 'lost':
        this.lose();
        break;
      case 'missing':
        this.lose('deleted');
        break;
      case 'nondeterminism':
        this.#block(why.recordedOtherwise(this.workflowId, answer.found));
        break;
      case 'conflict':
        this.#requeue();
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
    return this.#host.leaseIsFresh ? undefined : this.#verify();
  }

  assertRunning(): void {
    if (this.#state !== 'running') throw this.#whyGone;
  }

  async #verify(): Promise<void> {
    if (!(await this.write(this.#host.store.verifyOwnership(this.ownership)))) this.lose();
    this.assertRunning();
  }

  // Ends -------------------------------------------------------------------------------------------------------------

  async #timeOut(): Promise<void> {
    const error = why.timedOut(this.workflowId);
    await this.#finish(await failureOf(error, this.#host.serializer), error);
  }

  #finish(found: OutcomeRecord, reason?: Error): Promise<void> {
    const outcome = this.leavesUnknown ? { ...found, attention: found.attention ?? 'OUTCOME_UNKNOWN' } : found;
    return this.#end(reason, { kind: 'completed', outcome }, () => this.#host.store.complete(this.ownership, outcome));
  }

  continueWith(input: string): Promise<void> {
    // Every number that has been given out is below, also that of a call which is still open.
    const run: NextRun = { input, firstSeq: this.#nextSeq, unreceived: this.#open.unreceived };
    const reason = why.continuesAsNew();
    return this.#end(reason, { kind: 'continued' }, () => this.#host.store.continueAsNew(this.ownership, run));
  }

  /** Writes the end. Calls that are still open are rejected with `reason`; default: that the workflow has returned. */
  async #end(reason: Error | undefined, end: ExecutionEnd, write: () => Promise<WriteAnswer>): Promise<void> {
    if (this.#state !== 'running') return;
    this.#state = 'ending';
    this.#silence(reason);
    let answer: WriteAnswer;
    try {
      answer = await this.write(write());
    } catch {
      return;
    }
    switch (answer.kind) {
      case 'written':
        this.#leave(reason, end);
        break;
      case 'refused':
        await this.#finishRefused(
          new WriteRefusedError('The database refuses the end of the execution.', { cause: answer.error }),
        );
        break;
      default:
        this.#giveUp(answer);
    }
  }

  async #finishRefused(error: WriteRefusedError): Promise<void> {
    let answer: WriteAnswer;
    try {
      answer = await this.write(
        this.#host.store.complete(this.ownership, await failureOf(error, this.#host.serializer)),
      );
    } catch {
      return;
    }
    if (answer.kind === 'written') this.#leave(error, { kind: 'parked' });
    else this.block('WRITE_REFUSED', 'The database refuses the outcome, and its error too.', error);
  }

  #block(error: StepNondeterminismError): void {
    this.block('NONDETERMINISM', error.message, error);
  }

  #requeue(): void {
    const reason = why.ownershipLost(this.workflowId, 'requeued, as another writer kept changing it');
    this.#leave(reason, { kind: 'requeued', requeues: this.#requeues + 1 });
  }

  async #release(record: Parameters<ExecutionHost['store']['release']>[1]): Promise<void> {
    try {
      await this.#host.store.release(this.ownership, record);
    } catch (error) {
      // The store was closed, or refuses: the row stays owned, and is given back or recovered like that of a dead process.
      this.#warn('A workflow could not be released.', error);
    }
  }

  #warn(message: string, error: unknown): void {
    const code = codeOf(error);
    this.#host.logger.warn(message, { workflowId: this.workflowId, code });
  }

  /** Made when somebody asks: a workflow that simply returns needs no error, and its stack would cost more than its end. */
  get #whyGone(): Error {
    return (this.#gone ??= why.hasReturned());
  }

  /** From here on nothing is called or written, and whatever was open is rejected. */
  #silence(reason: Error | undefined): void {
    this.#isSilent = true;
    this.#gone = reason;
    this.#cancelDeadline?.();
    this.#replay.stop();
    if (this.#isUnloaded) {
      this.#open.clear();
    } else if (this.#open.size > 0) {
      this.#host.logger.info('Durable calls were still open when their execution ended.', {
        workflowId: this.workflowId,
        open: this.#open.size,
      });
      this.#open.rejectAll(this.#whyGone);
    }
    if (this.#controller !== undefined) this.#controller.abort(this.#whyGone);
    for (const callback of this.#onGone) callback(this.#whyGone);
    this.#onGone.clear();
  }

  #leave(reason: Error | undefined, end: ExecutionEnd): void {
    const silent = this.#state === 'ending';
    this.#state = 'over';
    if (!silent) this.#silence(reason);
    this.#host.ended(this, end);
  }
}
