import type { RecordedStep, StepRecord } from '../store/store.js';
import type { OpenTransaction, TransactionJob } from '../store/transaction-store.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import type { EventToAdd } from '../store/event-to-add.js';
import { elapsedSince } from './elapsed.js';
import { EventBuffer, NO_EVENTS } from './event-buffer.js';
import type { RunningExecution } from './execution-host.js';
import type { RunningAttempt } from './running-attempt.js';
import { TransactionEndedError } from '../errors/transaction-errors.js';
import * as why from './execution-errors.js';
import { startDecodingResult } from './decoding.js';
import { commitsElsewhere } from './transaction-lookup.js';
import { accountedFor, assertMethods, checkpointOrRefusal, encodeFailures, recordOfEnd } from './run-step.js';
import { runInScope } from './scope.js';
import { runAttempts, type AttemptRun, type StepEnd } from './step-attempts.js';
import type { TransactionDefinition } from './transaction-definition.js';

/** How a transaction's result came to be on record. */
type Recorded =
  /** In the transaction itself. */
  | { readonly kind: 'recorded'; readonly value: unknown }
  /** Not yet: the transaction has committed elsewhere, or wrote nothing. */
  | { readonly kind: 'to-record'; readonly record: StepRecord; readonly value: unknown }
  /** The same, and it was another run of this call that has committed. */
  | { readonly kind: 'to-record'; readonly record: StepRecord };

/** Runs one transaction call of a workflow: replays it, or runs its body in the transaction of its own record. */
export function runTransaction(
  execution: RunningExecution,
  definition: TransactionDefinition,
  self: unknown,
  args: unknown[],
): Promise<unknown> {
  const { seq, recorded } = execution.enter('transaction', definition.name);
  // What commits elsewhere may have without a record; a rollback asks. Else what is not recorded has had no effect.
  const mayHaveBegun = recorded !== undefined || commitsElsewhere(execution, definition);
  return accountedFor({ execution, definition, self, args, seq, recorded, mayHaveBegun }, (begins) =>
    runNumbered(execution, definition, self, args, seq, recorded, begins),
  );
}

async function runNumbered(
  execution: RunningExecution,
  definition: TransactionDefinition,
  self: unknown,
  args: unknown[],
  seq: number,
  recorded: RecordedStep | undefined,
  begins: (() => void) | undefined,
): Promise<unknown> {
  if (recorded !== undefined) return execution.replayed(recorded);
  const replaying = execution.replayOver();
  if (replaying !== undefined) await replaying;
  assertMethods(execution, definition, self);
  // What is not on record in the end has had no effect; but it may be committing at the moment at which the workflow fails.
  begins?.();
  const call = new TransactionCall(execution, definition, seq, self, args);
  const end = await runAttempts(definition, seq, {
    workflowId: execution.workflowId,
    runtime: execution.runtime,
    onGone: (callback) => execution.onGone(callback),
    get isRunning() {
      return execution.isRunning;
    },
    // Each try asks by itself, when it has a connection to come.
    mayRunBody: () => undefined,
    runBody: (attempt, run) => call.attempt(attempt, run),
    isFinal: (error) => call.isFinal(error),
    // What became of it has been found out.
    whatHappened: () => undefined,
  });
  execution.assertRunning();
  if (end.kind === 'error') return recordFailure(execution, definition, seq, end, call.startedAt);
  const result = end.value as Recorded;
  if (result.kind === 'to-record') await checkpointOrRefusal(execution, result.record);
  return 'value' in result ? result.value : takeAdopted(execution, result.record);
}

/** Records what a transaction failed with, unless an earlier run of it has committed after all. */
async function recordFailure(
  execution: RunningExecution,
  definition: TransactionDefinition,
  seq: number,
  end: StepEnd,
  startedAt: number,
): Promise<unknown> {
  const { record, thrown } = await recordOfEnd(execution, definition, seq, end, startedAt);
  const { settings } = definition;
  const answer = await execution.write(
    execution.host.transactions.decideFailure({
      ownership: execution.ownership,
      dataSource: settings.dataSource,
      modes: settings,
      signal: execution.signal,
      record,
    }),
  );
  execution.assertRunning();
  switch (answer.kind) {
    case 'to-record':
      await checkpointOrRefusal(execution, answer.record);
      if (answer.isOwn) throw thrown;
      return takeAdopted(execution, answer.record);
    case 'failed':
      // Neither decided nor recorded: it is for the next execution.
      execution.block('DATA_SOURCE_INVALID', why.NOT_DECIDED, why.asError(answer.error));
      throw answer.error;
    default:
      return execution.denied(answer);
  }
}

async function takeAdopted({ host: { serializer } }: RunningExecution, record: StepRecord): Promise<unknown> {
  const result = startDecodingResult(serializer, record);
  await result.done;
  return result.take();
}

class TransactionCall {
  readonly startedAt: number;
  readonly #execution: RunningExecution;
  readonly #definition: TransactionDefinition;
  readonly #seq: number;
  readonly #self: unknown;
  readonly #args: unknown[];
  /** Why the result of the body cannot be recorded. */
  #unstorable: unknown;

  constructor(
    execution: RunningExecution,
    definition: TransactionDefinition,
    seq: number,
    self: unknown,
    args: unknown[],
  ) {
    this.#execution = execution;
    this.startedAt = execution.runtime.now();
    this.#definition = definition;
    this.#seq = seq;
    this.#self = self;
    this.#args = args;
  }

  /** What the body committed by itself would be there twice. What cannot be stored, as a step's result, is not tried again. */
  isFinal(error: unknown): boolean {
    return error instanceof TransactionEndedError || error === this.#unstorable;
  }

  async attempt(attempt: RunningAttempt, run: AttemptRun): Promise<Recorded> {
    const execution = this.#execution;
    const { isolation, readOnly, idleTimeoutMs, dataSource } = this.#definition.settings;
    let value: unknown;
    let events = NO_EVENTS;
    const job: TransactionJob = {
      ownership: execution.ownership,
      seq: this.#seq,
      name: this.#definition.name,
      modes: { isolation, readOnly },
      idleTimeoutMs,
      dataSource,
      // Made when it is asked for.
      get signal() {
        return attempt.signal;
      },
      mayRun: () => execution.mayRunBody(),
      body: async (open) => {
        const buffer = new EventBuffer();
        value = await this.#runBody(attempt, run, open, buffer);
        const taken = buffer.take();
        events = taken instanceof Promise ? await taken : taken;
        return await this.#recordOf(value, events, attempt, run);
      },
    };
    const answer = await execution.write(execution.host.transactions.run(job));
    switch (answer.kind) {
      case 'recorded':
        if (events.length > 0) execution.host.store.announceEvents();
        execution.host.checkpointed();
        await execution.progress();
        return { kind: 'recorded', value };
      case 'to-record':
        return answer.isOwn
          ? { kind: 'to-record', record: answer.record, value }
          : { kind: 'to-record', record: answer.record };
      case 'failed':
        throw answer.error;
      default:
        return execution.denied(answer);
    }
  }

  /** Ends when the time is up or the execution gone, whatever the user's code does: it must not commit any more then. */
  async #runBody(
    attempt: RunningAttempt,
    run: AttemptRun,
    open: OpenTransaction,
    events: EventBuffer,
  ): Promise<unknown> {
    const { body, settings } = this.#definition;
    const { client } = open;
    const scope = { execution: this.#execution, step: attempt, transaction: { client, settings, events } };
    const running = new Promise<unknown>((resolve) => {
      resolve(runInScope(scope, () => body.apply(this.#self, this.#args)));
    });
    const user = { isSettled: false };
    let forget: (() => void) | undefined;
    try {
      // One promise for all that may end it: a race of several costs a promise and two callbacks for each.
      return await new Promise((resolve, reject) => {
        const settle = (): void => {
          user.isSettled = true;
        };
        running.then(settle, settle);
        forget = this.#execution.onGone(reject);
        const limited = run.limit(running);
        if (limited instanceof Promise) limited.then(resolve, reject);
        else resolve(limited);
      });
    } catch (error) {
      // One that has thrown has settled, or is about to.
      await Promise.resolve();
      if (!user.isSettled) open.abandon(why.asError(error), running);
      throw error;
    } finally {
      forget?.();
    }
  }

  async #recordOf(
    value: unknown,
    events: readonly EventToAdd[],
    { attempt }: RunningAttempt,
    { failures }: AttemptRun,
  ): Promise<StepRecord> {
    const { serializer } = this.#execution.host;
    try {
      const encoded = serializer.encode(value);
      return {
        seq: this.#seq,
        name: this.#definition.name,
        kind: 'transaction',
        output: typeof encoded === 'string' ? encoded : await encoded,
        error: null,
        attempts: attempt,
        attemptErrors: failures.length === 0 ? null : await encodeFailures(this.#execution, failures),
        childId: null,
        elapsedMs: elapsedSince(this.#execution.runtime, this.startedAt),
        events,
      };
    } catch (error) {
      // It has had no effect yet: once the codec works, it is simply run again.
      if (error instanceof PayloadCodecError) this.#execution.blockUnrecordable(error);
      this.#unstorable = error;
      throw error;
    }
  }
}
