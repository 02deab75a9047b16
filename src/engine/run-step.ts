import { RegistrationError } from '../errors/usage-errors.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RecordedStep, StepRecord } from '../store/store.js';
import { compensationBody } from './compensation-body.js';
import type { StepDefinition } from './definitions.js';
import { elapsedSince } from './elapsed.js';
import type { RunningExecution } from './execution-host.js';
import type { OpenCall } from './open-calls.js';
import type { RunningAttempt } from './running-attempt.js';
import { runInScope } from './scope.js';
import type { Soon } from './soon.js';
import { runAttempts, type AttemptHost, type AttemptRun, type Finding, type StepEnd } from './step-attempts.js';
import { meaningOf, recordStepIntent } from './step-intent.js';
import { stepMethod } from './step-method.js';
import { asError } from './thrown.js';
import { findOut, leavesUnknown, type UnknownStep } from './unknown-outcome.js';

/** Runs one step call of a workflow: replays it, or runs its body and records what came of it. */
export function runStep(
  execution: RunningExecution,
  open: OpenCall,
  definition: StepDefinition,
  self: unknown,
  args: unknown[],
): Promise<unknown> {
  const { seq, recorded } = execution.enter('step', definition.name);
  return accountedFor(
    { execution, definition, self, args, seq, recorded, mayHaveBegun: recorded !== undefined },
    (begins) => runNumbered(execution, open, definition, self, args, seq, recorded, begins),
  );
}

/** Keeps account of a step that has to be undone when the workflow is rolled back. `work` says when the step begins. */
export function accountedFor(
  call: {
    readonly execution: RunningExecution;
    readonly definition: StepDefinition;
    readonly self: unknown;
    readonly args: unknown[];
    readonly seq: number;
    readonly recorded: RecordedStep | undefined;
    /** By an earlier execution. */
    readonly mayHaveBegun: boolean;
  },
  work: (begins: (() => void) | undefined) => Promise<unknown>,
): Promise<unknown> {
  const { execution, definition, self, args, seq } = call;
  if (definition.compensate === undefined) return work(undefined);
  const compensation = { kind: 'step', seq, name: definition.name, definition, self, args } as const;
  return execution.compensations.track(compensation, call, execution, work);
}

async function runNumbered(
  execution: RunningExecution,
  open: OpenCall,
  definition: StepDefinition,
  self: unknown,
  args: unknown[],
  seq: number,
  recorded: RecordedStep | undefined,
  begins: (() => void) | undefined,
): Promise<unknown> {
  if (recorded?.complete === true) return execution.replayed(recorded);
  const replaying = execution.replayOver();
  if (replaying !== undefined) await replaying;
  begins?.();
  const startedAt = execution.runtime.now();
  const call = new StepCall(execution, open, definition, seq, self, args);
  const end = await (definition.needsIntent || recorded !== undefined
    ? runWithIntent(call, recorded)
    : runAttempts(definition, seq, call));
  execution.assertRunning();
  const made = recordOfEnd(execution, definition, seq, end, startedAt);
  const { record, thrown } = made instanceof Promise ? await made : made;
  const refused = await execution.checkpoint(record);
  if (refused !== undefined) throw await recordRefusal(execution, record, refused);
  if (record.error !== null) throw thrown;
  return (end as Extract<StepEnd, { readonly kind: 'value' }>).value;
}

/** What is to be recorded of a step, and what the workflow is to see thrown. */
interface EndRecord {
  readonly record: StepRecord;
  readonly thrown: unknown;
}

/** What is to be recorded of a step that has ended. Blocks when it cannot be encoded. */
export function recordOfEnd(
  execution: RunningExecution,
  definition: StepDefinition,
  seq: number,
  end: StepEnd,
  startedAt: number,
): Soon<EndRecord> {
  const elapsed = elapsedSince(execution.runtime, startedAt);
  let encoded: Soon<string> | undefined;
  try {
    if (end.kind === 'value') encoded = execution.host.serializer.encode(end.value);
  } catch (error) {
    encoded = Promise.reject(asError(error));
  }
  if (end.kind === 'value' && typeof encoded === 'string' && end.failures.length === 0) {
    return { record: recordWith(definition, seq, end, elapsed, { output: encoded }), thrown: undefined };
  }
  return recordOf(execution, definition, seq, end, elapsed, encoded).catch((error: unknown) => {
    // Running the body again and again until the codec works would repeat its effect as often.
    execution.blockUnrecordable(error);
    throw error;
  });
}

/** @throws WriteRefusedError when the database refuses it: that is what is recorded then. */
export async function checkpointOrRefusal(execution: RunningExecution, record: StepRecord): Promise<void> {
  const refused = await execution.checkpoint(record);
  if (refused !== undefined) throw await recordRefusal(execution, record, refused);
}

/** The body begins when its intent is on record. One that is there already, without a result, is of a run that was interrupted. */
async function runWithIntent(call: StepCall, recorded: RecordedStep | undefined): Promise<StepEnd> {
  const { execution, open, definition, seq } = call;
  assertMethods(execution, definition, call.self);
  if (recorded === undefined) {
    await recordStepIntent(execution, open, definition, seq);
    return runAttempts(definition, seq, call);
  }
  open.intended = seq;
  if (meaningOf(recorded, definition) === 'run-again') return runAttempts(definition, seq, call);
  const attempts = Math.max(recorded.attempts, 1);
  const found = await findOut(call, undefined, attempts);
  if (found.kind === 'happened')
    return { kind: 'value', value: found.value, events: found.events, attempts, failures: [] };
  if (definition.atMostOnce) return { kind: 'error', error: found.error, attempts, failures: [] };
  return runAttempts(definition, seq, call);
}

/** One call of a step that has no recorded result yet. */
class StepCall implements AttemptHost, UnknownStep {
  constructor(
    readonly execution: RunningExecution,
    readonly open: OpenCall,
    readonly definition: StepDefinition,
    readonly seq: number,
    readonly self: unknown,
    readonly args: unknown[],
  ) {}

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

  mayRunBody(): Promise<void> | undefined {
    return this.execution.mayRunBody();
  }

  runBody(attempt: RunningAttempt, { limit }: AttemptRun): unknown {
    const { execution, definition, self, args } = this;
    return limit(runInScope({ execution, step: attempt }, () => definition.body.apply(self, args)));
  }

  whatHappened(error: unknown, attempt: number): Promise<Finding> | undefined {
    return leavesUnknown(this.definition, error) ? findOut(this, error, attempt) : undefined;
  }
}

/** What is found missing only after a crash, or when it is to be undone, would be found too late. */
export function assertMethods(execution: RunningExecution, definition: StepDefinition, self: unknown): void {
  const { name, reconcile, compensate } = definition;
  try {
    if (reconcile !== undefined) stepMethod(reconcile.source, self, name, 'reconcile');
    if (compensate !== undefined) compensationBody(compensate, name, self);
  } catch (error) {
    if (!(error instanceof RegistrationError)) throw error;
    execution.block(error.code, error.message, error);
    throw error;
  }
}

async function recordOf(
  execution: RunningExecution,
  definition: StepDefinition,
  seq: number,
  end: StepEnd,
  elapsed: number,
  encoded: Soon<string> | undefined,
): Promise<EndRecord> {
  const { serializer, logger } = execution.host;
  let output: string | null = null;
  let error: string | null = null;
  let thrown: unknown;
  if (end.kind === 'value') {
    try {
      output = (await encoded) ?? null;
    } catch (refusal) {
      if (refusal instanceof PayloadCodecError) throw refusal;
      // The body has had its effect: the refusal is its recorded result, so that it is not run again and again.
      thrown = refusal;
      error = await serializer.encodeError(refusal);
    }
  } else {
    thrown = end.error;
    error = await serializer.encodeError(end.error);
  }
  if (error !== null) {
    logger.warn('A step failed for good.', { workflowId: execution.workflowId, step: definition.name, seq });
  }
  const attemptErrors = await encodeFailures(execution, end.failures);
  return { record: recordWith(definition, seq, end, elapsed, { output, error, attemptErrors }), thrown };
}

function recordWith(
  definition: StepDefinition,
  seq: number,
  end: StepEnd,
  elapsedMs: number,
  encoded: Partial<Pick<StepRecord, 'output' | 'error' | 'attemptErrors'>>,
): StepRecord {
  const { output = null, error = null, attemptErrors = null } = encoded;
  return {
    seq,
    name: definition.name,
    kind: definition.kind,
    output,
    error,
    attempts: end.attempts,
    attemptErrors,
    childId: null,
    elapsedMs: elapsedMs,
    // With an error there is nothing to tell the outside world.
    events: error === null && end.kind === 'value' ? end.events : [],
  };
}

/** A JSON array of encoded errors; null for none. */
export async function encodeFailures(
  execution: RunningExecution,
  failures: readonly unknown[],
): Promise<string | null> {
  if (failures.length === 0) return null;
  const texts: string[] = [];
  for (const failure of failures) texts.push(await execution.host.serializer.encodeError(failure));
  return `[${texts.join(',')}]`;
}

/** The database refuses the result: that is the step's recorded error, and the body is not run again. */
async function recordRefusal(
  execution: RunningExecution,
  record: StepRecord,
  cause: Error,
): Promise<WriteRefusedError> {
  const error = new WriteRefusedError(`The database refuses the result of step "${record.name}".`, { cause });
  const encoded = await execution.host.serializer.encodeError(error);
  const refusedAgain = await execution.checkpoint({
    ...record,
    output: null,
    error: encoded,
    attemptErrors: null,
    events: [],
  });
  if (refusedAgain !== undefined) {
    execution.block('WRITE_REFUSED', 'The database refuses the result of a step, and its error too.', error);
  }
  return error;
}
