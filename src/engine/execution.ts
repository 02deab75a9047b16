import type { WorkflowContext } from '../api/context.js';
import {
  OwnershipLostError,
  StepNondeterminismError,
  WorkflowEndedError,
  WorkflowTimeoutError,
  WriteRefusedError,
} from '../errors/workflow-errors.js';
import { HoldfastError } from '../errors/holdfast-error.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import type {
  Denied,
  NextRun,
  OutcomeRecord,
  Ownership,
  RecordedStep,
  StepKind,
  StepRecord,
  WriteAnswer,
} from '../store/store.js';
import type { StepDefinition, WorkflowDefinition } from './definitions.js';
import type { ExecutionEnd, ExecutionHost, RunningExecution } from './execution-host.js';
import { enterHistory } from './history-limit.js';
import type { ExecutionStart } from './execution-start.js';
import { otherPath } from './other-path.js';
import { failureOf, successOf } from './outcome-record.js';
import { Replay, Turnstile } from './replay.js';
import { runStep } from './run-step.js';
import { runInScope } from './scope.js';
import { startTimer } from './timer.js';

/** A durable call whose promise the workflow's code holds. */
interface OpenCall {
  readonly reject: (cause: unknown) => void;
}

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
  readonly #host: ExecutionHost;
  readonly #start: ExecutionStart;
  readonly #replay: Replay;
  readonly #turnstile = new Turnstile();
  readonly #open = new Set<OpenCall>();
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
      this.#block(otherPath(this.workflowId, next, 'the code stands still without asking for it'));
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
    const { workflowId, ownership, attempt } = this;
    const signal = (): AbortSignal => this.signal;
    return {
      workflowId,
      epoch: ownership.epoch,
      attempt,
      get signal() {
        return signal();
      },
    };
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
    const isCodec = error instanceof PayloadCodecError;
    this.block(
      isCodec ? error.code : 'ENGINE_FAILURE',
      isCodec
        ? `${error.message} Mend it, and resume: what could not be recorded is done again.`
        : 'An unexpected error stopped the execution. Resume it to try again.',
      asError(error),
    );
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
        asError(error),
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
    const { next } = this.#replay;
    if (next !== undefined) this.#block(otherPath(this.workflowId, next, 'the code ended without asking for it'));
    else await this.#finish(outcome);
  }

  /** Ownership is gone, as somebody has found out: park. */
  lose(reason = 'cancelled, taken over, given back or deleted'): void {
    if (this.#state === 'over') return;
    this.#leave(
      new OwnershipLostError(
        `This execution of workflow "${this.workflowId}" no longer owns it (${reason}). Let this error pass.`,
      ),
      { kind: 'parked' },
    );
  }

  /** The executor shuts down: another one may go on at once. */
  async giveBack(): Promise<void> {
    if (this.#state !== 'running') return;
    this.#leave(new OwnershipLostError('The executor is shutting down; another one carries on.'), {
      kind: 'given-back',
    });
    await this.#release({ to: 'ENQUEUED', unspendAttempt: true });
  }

  block(attention: string, detail: string, error: Error): void {
    if (this.#state === 'over') return;
    this.#leave(error, { kind: 'blocked' });
    void this.#release({ to: 'BLOCKED', attention, detail });
  }

  // Durable calls ------------------------------------------------------------------------------------------------

  call<Result>(work: () => Promise<Result>): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      if (this.#state !== 'running') {
        reject(this.#whyGone);
        return;
      }
      const open: OpenCall = { reject };
      this.#open.add(open);
      work().then(
        (value) => {
          this.#open.delete(open);
          resolve(value);
        },
        (error: unknown) => {
          this.#open.delete(open);
          // Whatever the step threw, also if that is no Error.
          reject(error);
        },
      );
    });
    promise.catch(() => undefined);
    return promise;
  }

  enter(
    kind: StepKind,
    name: string,
    childId?: string,
  ): { readonly seq: number; readonly recorded: RecordedStep | undefined } {
    const seq = this.#nextSeq++;
    // The way out of a long history is open at its limit, too.
    if (kind !== 'continue') enterHistory(seq - this.#start.firstSeq, this.workflowId, this.#host.logger);
    const recorded = this.#replay.find(seq);
    if (recorded === undefined) return { seq, recorded };
    const isOther = childId !== undefined && recorded.childId !== childId;
    if (recorded.kind !== kind || recorded.name !== name || isOther) {
      const error = otherPath(
        this.workflowId,
        recorded,
        `the code calls ${kind} "${name}"${isOther ? ` of "${childId}"` : ''} there`,
      );
      this.#block(error);
      throw error;
    }
    return { seq, recorded };
  }

  peek(): { readonly recorded: RecordedStep | undefined; readonly isNew: boolean } {
    return { recorded: this.#replay.find(this.#nextSeq), isNew: this.#nextSeq > this.#replay.lastSeq };
  }

  async replayed(recorded: RecordedStep): Promise<unknown> {
    await this.#replay.turnOf(recorded);
    if (recorded.error !== null) throw await this.#host.serializer.decode(recorded.error);
    return recorded.output === null ? undefined : this.#host.serializer.decode(recorded.output);
  }

  replayOver(): Promise<void> | undefined {
    return this.#replay.isOver ? undefined : this.#replay.over();
  }

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
    await this.progress();
    return undefined;
  }

  async progress(): Promise<void> {
    this.#requeues = 0;
    const turn = this.#turnstile.pass();
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
    return asError(error);
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
        this.#block(
          new StepNondeterminismError(
            `Workflow "${this.workflowId}" has recorded ${answer.found} already where it now wants to record another result.`,
          ),
        );
        break;
      case 'conflict':
        this.#requeue();
        break;
    }
  }

  runStep(definition: StepDefinition, self: unknown, args: unknown[]): Promise<unknown> {
    return this.call(() => runStep(this, definition, self, args));
  }

  /**
   * The lease is judged by the monotonic clock since the last acknowledged heartbeat; if it may have lapsed, the database
   * says who owns the workflow. A process that was paused must not charge a card before it finds out what happened.
   */
  mayRunBody(): Promise<void> | undefined {
    this.assertRunning();
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
    const error = new WorkflowTimeoutError(`Workflow "${this.workflowId}" did not end before its deadline.`);
    await this.#finish(await failureOf(error, this.#host.serializer), error);
  }

  #finish(outcome: OutcomeRecord, reason?: Error): Promise<void> {
    return this.#end(reason, { kind: 'completed', outcome }, () => this.#host.store.complete(this.ownership, outcome));
  }

  continueWith(input: string): Promise<void> {
    // Every number that has been given out is below, also that of a call which is still open.
    const run: NextRun = { input, firstSeq: this.#nextSeq };
    const reason = new WorkflowEndedError('The workflow continues as new: this run of it is over.');
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
    this.#leave(new OwnershipLostError('Another writer kept changing the workflow: it is requeued.'), {
      kind: 'requeued',
      requeues: this.#requeues + 1,
    });
  }

  async #release(record: Parameters<ExecutionHost['store']['release']>[1]): Promise<void> {
    try {
      await this.#host.store.release(this.ownership, record);
    } catch (error) {
      // The store was closed, or refuses: the row stays owned, and is given back or recovered like that of a dead process.
      this.#host.logger.warn('A workflow could not be released.', {
        workflowId: this.workflowId,
        code: error instanceof HoldfastError ? error.code : undefined,
      });
    }
  }

  /** Made when somebody asks: a workflow that simply returns needs no error, and its stack would cost more than its end. */
  get #whyGone(): Error {
    return (this.#gone ??= new WorkflowEndedError('The workflow has returned: its steps can no longer be called.'));
  }

  /** From here on nothing is called or written, and whatever was open is rejected. */
  #silence(reason: Error | undefined): void {
    this.#isSilent = true;
    this.#gone = reason;
    this.#cancelDeadline?.();
    this.#replay.stop();
    if (this.#open.size > 0) {
      this.#host.logger.info('Durable calls were still open when their execution ended.', {
        workflowId: this.workflowId,
        open: this.#open.size,
      });
      for (const { reject } of this.#open) reject(this.#whyGone);
      this.#open.clear();
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

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
