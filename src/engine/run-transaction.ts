import type { RecordedStep, StepRecord } from '../store/store.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RunningExecution } from './execution-host.js';
import type { RunningAttempt } from './running-attempt.js';
import { TransactionEndedError } from '../errors/transaction-errors.js';
import * as why from './execution-errors.js';
import { startDecodingResult } from './decoding.js';
import { commitsElsewhere } from './transaction-lookup.js';
import { accountedFor, assertMethods, checkpointOrRefusal, recordOfEnd } from './run-step.js';
import { runAttempts, type AttemptHost, type AttemptRun, type StepEnd } from './step-attempts.js';
import { type AttemptedCall, TransactionAttempt } from './transaction-attempt.js';
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

class TransactionCall implements AttemptHost, AttemptedCall {
  readonly startedAt: number;
  #attempt: TransactionAttempt | undefined;

  constructor(
    readonly execution: RunningExecution,
    readonly definition: TransactionDefinition,
    readonly seq: number,
    readonly self: unknown,
    readonly args: unknown[],
  ) {
    this.startedAt = execution.runtime.now();
  }

  get workflowId(): string {
    return this.execution.workflowId;
  }

  get runtime(): Runtime {
    return this.execution.runtime;
  }

  get isRunning(): boolean {
    return this.execution.isRunning;
  }

  onGone(callback: (reason: Error) => void): () => void {
    return this.execution.onGone(callback);
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
    return error instanceof TransactionEndedError || error === this.#attempt?.unstorable;
  }

  async runBody(attempt: RunningAttempt, run: AttemptRun): Promise<Recorded> {
    const execution = this.execution;
    const job = new TransactionAttempt(this, attempt, run);
    this.#attempt = job;
    const answer = await execution.write(execution.host.transactions.run(job));
    let turn: Promise<void> | undefined;
    switch (answer.kind) {
      case 'recorded':
        if (job.events.length > 0) execution.host.store.announceEvents();
        execution.host.checkpointed();
        turn = execution.progress();
        if (turn !== undefined) await turn;
        return { kind: 'recorded', value: job.value };
      case 'to-record':
        return answer.isOwn
          ? { kind: 'to-record', record: answer.record, value: job.value }
          : { kind: 'to-record', record: answer.record };
      case 'failed':
        throw answer.error;
      default:
        return execution.denied(answer);
    }
  }
}
