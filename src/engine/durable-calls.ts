import type { WorkflowHandle } from '../api/workflow-handle.js';
import type { StartOptions } from '../api/workflow-options.js';
import { WorkflowIdConflictError, WriteRefusedError } from '../errors/workflow-errors.js';
import type { IntentAnswer, IntentRecord, Ownership, RecordedStep, StepKind, WorkflowStart } from '../store/store.js';
import { childIdOf } from './child-id.js';
import { startDecodingResult } from './decoding.js';
import type { WorkflowDefinition } from './definitions.js';
import { elapsedSince } from './elapsed.js';
import type { RunningExecution } from './execution-host.js';
import type { Outcome } from './outcome.js';

// What a workflow can call besides steps. Each is numbered synchronously with the call, replays what is recorded, and
// records what it waits for before it waits.

/** A value that is not the same at every run: recorded at the first. */
export function recordValue(execution: RunningExecution, name: string, produce: () => unknown): Promise<unknown> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('value', name);
    if (recorded !== undefined) return execution.replayed(recorded);
    await execution.replayOver();
    const step = { seq, name, kind: 'value', childId: null, startedAt: execution.runtime.now() } as const;
    const value = produce();
    await recordResult(execution, step, { output: await encode(execution, value), error: null });
    return value;
  });
}

/** Sleeps until a moment that is fixed, by the database's clock, at the first run. */
export function durableSleep(execution: RunningExecution, sleep: NonNullable<IntentRecord['sleep']>): Promise<void> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('sleep', 'sleep');
    if (recorded?.complete === true) {
      await execution.replayed(recorded);
      return;
    }
    await execution.replayOver();
    const step = { seq, name: 'sleep', kind: 'sleep', childId: null, startedAt: execution.runtime.now() } as const;
    let remainingMs: number;
    if (recorded === undefined) {
      remainingMs = await recordWait(execution, { seq, name: 'sleep', kind: 'sleep', sleep });
    } else {
      // Counted when the history was loaded, a moment before this execution was made.
      remainingMs = (recorded.remainingMs ?? 0) - execution.ageMs;
    }
    await execution.waiting({ kind: 'timer' }, elapse(execution, remainingMs), remainingMs);
    await recordResult(execution, step, { output: await encode(execution, undefined), error: null });
  });
}

/** Starts a child and waits for its outcome: what calling a workflow inside a workflow does. */
export function callChild(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: StartOptions,
): Promise<unknown> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('workflow', definition.name);
    if (recorded?.complete === true) return execution.replayed(recorded);
    await execution.replayOver();
    const call = { seq, name: definition.name, kind: 'workflow', startedAt: execution.runtime.now() } as const;
    const childId =
      recorded?.childId ??
      (await orRecordFailure(execution, { ...call, childId: null }, () =>
        startChild(execution, definition, args, options, call),
      ));
    return awaitAndRecord(execution, { ...call, childId });
  });
}

/** Starts a child and returns its handle: what `start` inside a workflow does. */
export function startChildHandle(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: StartOptions,
): Promise<WorkflowHandle> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('start', definition.name);
    if (recorded !== undefined) {
      // Throws where the start was refused; returns nothing where it was not, since the intent has no result.
      await execution.replayed(recorded);
      return execution.host.handleOf(recorded.childId ?? '');
    }
    await execution.replayOver();
    const call = { seq, name: definition.name, kind: 'start', startedAt: execution.runtime.now() } as const;
    const childId = await orRecordFailure(execution, { ...call, childId: null }, () =>
      startChild(execution, definition, args, options, call),
    );
    return execution.host.handleOf(childId);
  });
}

/** Waits for the outcome of any workflow, and records it: what `handle.result()` inside a workflow does. */
export function awaitOutcome(execution: RunningExecution, workflowId: string): Promise<unknown> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('outcome', 'result', workflowId);
    if (recorded !== undefined) return execution.replayed(recorded);
    await execution.replayOver();
    const startedAt = execution.runtime.now();
    return awaitAndRecord(execution, { seq, name: 'result', kind: 'outcome', childId: workflowId, startedAt });
  });
}

export interface StepIdentity {
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  readonly childId: string | null;
  /** When this execution came to it, by the monotonic clock. */
  readonly startedAt: number;
}

export async function encode(execution: RunningExecution, value: unknown): Promise<string> {
  try {
    return await execution.host.serializer.encode(value);
  } catch (error) {
    execution.blockUnrecordable(error);
    throw error;
  }
}

async function encodeError(execution: RunningExecution, thrown: unknown): Promise<string> {
  try {
    return await execution.host.serializer.encodeError(thrown);
  } catch (error) {
    execution.blockUnrecordable(error);
    throw error;
  }
}

export async function recordResult(
  execution: RunningExecution,
  step: StepIdentity,
  result: Pick<RecordedStep, 'output' | 'error'>,
): Promise<void> {
  const { startedAt, ...identity } = step;
  const elapsedMs = elapsedSince(execution.runtime, startedAt);
  const refused = await execution.checkpoint({ ...identity, ...result, attempts: 1, attemptErrors: null, elapsedMs });
  if (refused !== undefined) {
    throw new WriteRefusedError(`The database refuses the result of ${step.kind} "${step.name}".`, { cause: refused });
  }
}

/**
 * A call that fails before anything of it is recorded is recorded as failed: code that catches the error goes on, and a
 * replay that found nothing under the call's number would wait for it.
 */
export async function orRecordFailure<Result>(
  execution: RunningExecution,
  step: StepIdentity,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    // The end of the execution is nobody's result.
    execution.assertRunning();
    await recordResult(execution, step, { output: null, error: await encodeError(execution, error) });
    throw error;
  }
}

/** Records when a wait ends, before it begins. Returns how many milliseconds that is away. */
export async function recordWait(execution: RunningExecution, intent: IntentRecord): Promise<number> {
  const answered = execution.host.store.recordIntent(execution.ownership, intent);
  const { remainingMs } = written(execution, await execution.write(answered));
  await execution.progress();
  return remainingMs ?? 0;
}

async function awaitAndRecord(
  execution: RunningExecution,
  step: StepIdentity & { readonly childId: string },
): Promise<unknown> {
  const { output, error }: Outcome = await orRecordFailure(execution, step, () =>
    execution.waiting(
      { kind: 'outcome', workflowId: step.childId },
      execution.host.waitForOutcome(step.childId, execution),
    ),
  );
  const result = startDecodingResult(execution.host.serializer, { output, error });
  await result.done;
  await recordResult(execution, step, { output, error });
  return result.take();
}

async function startChild(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: StartOptions,
  call: Pick<StepIdentity, 'seq' | 'name' | 'kind'>,
): Promise<string> {
  const { host, ownership } = execution;
  const childId = options.workflowId ?? childIdOf(ownership, call.seq);
  const start: WorkflowStart = await host.prepare(definition, args, options, childId);
  const token = execution.runtime.randomUuid();
  const child = { ...start, token, onParentCancel: options.onParentCancel ?? 'cancel' };
  const { seq, name, kind } = call;
  const sentAt = execution.runtime.now();
  const intent = host.store.recordIntent(ownership, { seq, name, kind, child });
  const answer = await execution.write(intent);
  if (answer.kind === 'child-name-taken') {
    throw new WorkflowIdConflictError(
      `Workflow ID "${childId}" belongs to a workflow named "${answer.name}", not "${definition.name}". Choose another ID.`,
    );
  }
  if (written(execution, answer).child === 'created') {
    const child: Ownership = { workflowId: childId, token, epoch: 1, recordVersion: 1 };
    await execution.write(host.runChild(definition, start, child, sentAt));
  }
  await execution.progress();
  return childId;
}

function written(
  execution: RunningExecution,
  answer: IntentAnswer,
): Extract<IntentAnswer, { readonly kind: 'written' }> {
  switch (answer.kind) {
    case 'written':
      return answer;
    case 'refused':
      throw new WriteRefusedError('The database refuses what the workflow wants to record.', { cause: answer.error });
    case 'child-name-taken':
      throw new TypeError('Not an answer to this intent.');
    default:
      return execution.denied(answer);
  }
}

/** Never resolves when the execution ends first: the call has been rejected by then. */
function elapse(execution: RunningExecution, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = execution.runtime.startTimer(ms, () => {
      forget();
      resolve();
    });
    const forget = execution.onGone(cancel);
  });
}
