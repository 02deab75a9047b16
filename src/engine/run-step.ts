import { PayloadCodecError } from '../errors/value-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { StepRecord } from '../store/store.js';
import type { StepDefinition } from './definitions.js';
import { elapsedSince } from './elapsed.js';
import type { RunningExecution } from './execution-host.js';
import { runInScope } from './scope.js';
import { runAttempts, type AttemptHost, type StepEnd } from './step-attempts.js';

/** Runs one step call of a workflow: replays it, or runs its body and records what came of it. */
export async function runStep(
  execution: RunningExecution,
  definition: StepDefinition,
  self: unknown,
  args: unknown[],
): Promise<unknown> {
  const { seq, recorded } = execution.enter('step', definition.name);
  if (recorded !== undefined) return execution.replayed(recorded);
  const replaying = execution.replayOver();
  if (replaying !== undefined) await replaying;
  const startedAt = performance.now();
  const end = await runAttempts(definition, seq, attemptHost(execution, definition, self, args));
  execution.assertRunning();
  const { record, thrown } = await recordOf(execution, definition, seq, end, startedAt).catch((error: unknown) => {
    // Running the body again and again until the codec works would repeat its effect as often.
    execution.blockUnrecordable(error);
    throw error;
  });
  const refused = await execution.checkpoint(record);
  if (refused !== undefined) throw await recordRefusal(execution, record, refused);
  if (record.error !== null) throw thrown;
  return (end as Extract<StepEnd, { readonly kind: 'value' }>).value;
}

function attemptHost(
  execution: RunningExecution,
  definition: StepDefinition,
  self: unknown,
  args: unknown[],
): AttemptHost {
  return {
    workflowId: execution.workflowId,
    onGone: (callback) => execution.onGone(callback),
    get isRunning() {
      return execution.isRunning;
    },
    mayRunBody: () => execution.mayRunBody(),
    runBody: (attempt) => runInScope({ execution, step: attempt }, () => definition.body.apply(self, args)),
  };
}

async function recordOf(
  execution: RunningExecution,
  definition: StepDefinition,
  seq: number,
  end: StepEnd,
  startedAt: number,
): Promise<{ readonly record: StepRecord; readonly thrown: unknown }> {
  const { serializer, logger } = execution.host;
  let output: string | null = null;
  let error: string | null = null;
  let thrown: unknown;
  if (end.kind === 'value') {
    try {
      const encoded = serializer.encode(end.value);
      output = typeof encoded === 'string' ? encoded : await encoded;
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
  const record: StepRecord = {
    seq,
    name: definition.name,
    kind: 'step',
    output,
    error,
    attempts: end.attempts,
    attemptErrors: end.failures.length === 0 ? null : await encodeFailures(execution, end.failures),
    childId: null,
    elapsedMs: elapsedSince(startedAt),
  };
  return { record, thrown };
}

/** A JSON array of encoded errors. */
async function encodeFailures(execution: RunningExecution, failures: readonly unknown[]): Promise<string> {
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
  const refusedAgain = await execution.checkpoint({ ...record, output: null, error: encoded, attemptErrors: null });
  if (refusedAgain !== undefined) {
    execution.block('WRITE_REFUSED', 'The database refuses the result of a step, and its error too.', error);
  }
  return error;
}
