import type { RecordedStep, StepRecord } from '../store/store.js';
import type { OpenTransaction, TransactionJob } from '../store/transaction-store.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import type { Runtime } from '../runtime/runtime.js';
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
import type { Soon } from './soon.js';
import { runAttempts, type AttemptHost, type AttemptRun, type StepEnd } from './step-attempts.js';
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
  const end = await runAttempts(definition, seq, call);
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

class TransactionCall implements AttemptHost {
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

  get workflowId(): string {
    return this.#execution.workflowId;
  }

  get runtime(): Runtime {
    return this.#execution.runtime;
  }

  get isRunning(): boolean {
    return this.#execution.isRunning;
  }

  onGone(callback: (reason: Error) => void): () => void {
    return this.#execution.onGone(callback);
  }

  /** Each try asks by itself, when it has a connection to come. */
  mayRunBody(): undefined {
    return undefined;
  }

  /** What became of it has been found out. */
  whatHappened(): undefined {
    return undefined;
  }

  /** What the body committed by itself would be there twice. What cannot be stored, as a step's result, is not tried again. */
  isFinal(error: unknown): boolean {
    return error instanceof TransactionEndedError || error === this.#unstorable;
  }

  async runBody(attempt: RunningAttempt, run: AttemptRun): Promise<Recorded> {
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
        value = await this.#callBody(attempt, run, open, buffer);
        const taken = buffer.take();
        events = taken instanceof Promise ? await taken : taken;
        const record = this.#recordOf(value, events, attempt, run);
        return record instanceof Promise ? await record : record;
      },
    };
    const answer = await execution.write(execution.host.transactions.run(job));
    let turn: Promise<void> | undefined;
    switch (answer.kind) {
      case 'recorded':
        if (events.length > 0) execution.host.store.announceEvents();
        execution.host.checkpointed();
        turn = execution.progress();
        if (turn !== undefined) await turn;
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
  #callBody(attempt: RunningAttempt, run: AttemptRun, open: OpenTransaction, events: EventBuffer): Promise<unknown> {
    const { body, settings } = this.#definition;
    const scope = { execution: this.#execution, step: attempt, transaction: { client: open.client, settings, events } };
    const running = promiseOf(() => runInScope(scope, () => body.apply(this.#self, this.#args)));
    // One promise for all that may end it: a race of several costs a promise and two callbacks for each.
    return new Promise((resolve, reject) => {
      let hasSettled = false;
      let isOver = false;
      let forget = (): void => undefined;
      const fail = (error: unknown): void => {
        if (isOver) return;
        isOver = true;
        forget();
        // A body that has thrown has settled, or is about to.
        queueMicrotask(() => {
          if (!hasSettled) open.abandon(why.asError(error), running);
          reject(error);
        });
      };
      const succeed = (value: unknown): void => {
        if (isOver) return;
        isOver = true;
        forget();
        resolve(value);
      };
      const limited = run.limit(running);
      running.then(
        (value) => {
          hasSettled = true;
          if (limited === running) succeed(value);
        },
        (error: unknown) => {
          hasSettled = true;
          if (limited === running) fail(error);
        },
      );
      if (limited !== running) Promise.resolve(limited).then(succeed, fail);
      forget = this.#execution.onGone(fail);
    });
  }

  #recordOf(
    value: unknown,
    events: readonly EventToAdd[],
    { attempt }: RunningAttempt,
    { failures }: AttemptRun,
  ): Soon<StepRecord> {
    const recordWith = (output: string, attemptErrors: string | null): StepRecord => ({
      seq: this.#seq,
      name: this.#definition.name,
      kind: 'transaction',
      output,
      error: null,
      attempts: attempt,
      attemptErrors,
      childId: null,
      elapsedMs: elapsedSince(this.#execution.runtime, this.startedAt),
      events,
    });
    let encoded: Soon<string>;
    try {
      encoded = this.#execution.host.serializer.encode(value);
    } catch (error) {
      throw this.#unrecordable(error);
    }
    if (typeof encoded === 'string' && failures.length === 0) return recordWith(encoded, null);
    return Promise.all([encoded, encodeFailures(this.#execution, failures)]).then(
      ([output, attemptErrors]) => recordWith(output, attemptErrors),
      (error: unknown) => {
        throw this.#unrecordable(error);
      },
    );
  }

  #unrecordable(error: unknown): unknown {
    // It has had no effect yet: once the codec works, it is simply run again.
    if (error instanceof PayloadCodecError) this.#execution.blockUnrecordable(error);
    this.#unstorable = error;
    return error;
  }
}

/** What the body returns or throws, whether it is asynchronous or not. */
function promiseOf(body: () => unknown): Promise<unknown> {
  try {
    const returned = body();
    return returned instanceof Promise ? returned : Promise.resolve(returned);
  } catch (error) {
    return Promise.reject(error);
  }
}
