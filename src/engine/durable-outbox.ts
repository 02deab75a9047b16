import type { OutsideOutboxAddOptions } from '../api/outbox.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import { encode, orRecordFailure } from './durable-calls.js';
import { elapsedSince } from './elapsed.js';
import type { EventBuffer } from './event-buffer.js';
import type { RunningExecution } from './execution-host.js';
import { checkOutboxAdd, encodePayload } from './outbox-arguments.js';
import type { RunningAttempt } from './running-attempt.js';
import type { Scope } from './scope.js';

/**
 * Adds an event to the outbox from inside a workflow: as a durable call of its own, or, in the body of a step, together with that
 * step's result.
 */
export function addEvent(
  { execution, step, transaction, readOnly }: Scope,
  topic: string,
  payload: unknown,
  options: OutsideOutboxAddOptions,
): Promise<void> {
  return execution.call(async () => {
    if (readOnly !== undefined) {
      throw new OutsideWorkflowError(`outbox.add was called inside ${readOnly}, which may only look.`);
    }
    const event = checkOutboxAdd(topic, options);
    if (options.transaction !== undefined) {
      throw new InvalidArgumentError(
        "Inside a workflow, outbox.add commits with the workflow's own record: leave out the transaction.",
      );
    }
    await (step === undefined
      ? addAsCall(execution, event, payload)
      : addInStep(execution, step, transaction?.events ?? step.events, event, payload));
  });
}

type NamedEvent = ReturnType<typeof checkOutboxAdd>;

async function addAsCall(execution: RunningExecution, event: NamedEvent, payload: unknown): Promise<void> {
  const { seq, recorded } = execution.enter('outbox', event.topic);
  if (recorded !== undefined) {
    await execution.replayed(recorded);
    return;
  }
  await execution.replayOver();
  const step = { seq, name: event.topic, kind: 'outbox', childId: null, startedAt: execution.runtime.now() } as const;
  const { serializer } = execution.host;
  await orRecordFailure(execution, step, async () => {
    // Encoding may take a while, and events of one key have the order of the calls.
    const refused = await execution.writeOrder.send(
      () =>
        Promise.all([encodeGiven(execution, () => encodePayload(serializer, payload)), encode(execution, undefined)]),
      ([text, output]) =>
        execution.checkpoint({
          ...step,
          output,
          error: null,
          attempts: 1,
          attemptErrors: null,
          elapsedMs: elapsedSince(execution.runtime, step.startedAt),
          events: [{ ...event, payload: text }],
        }),
    );
    if (refused !== undefined) throw new WriteRefusedError('The database refuses the event.', { cause: refused });
  });
}

async function addInStep(
  execution: RunningExecution,
  attempt: RunningAttempt,
  events: EventBuffer,
  event: NamedEvent,
  payload: unknown,
): Promise<void> {
  if (attempt.isOver || events.isTaken) {
    throw new OutsideWorkflowError(
      `outbox.add was called by an attempt of step "${attempt.name}" that is over. Await every call in the step's body.`,
    );
  }
  await events.add(event, () => encodePayload(execution.host.serializer, payload));
  execution.assertRunning();
}

/** What cannot be stored is the code's fault; a codec that fails is not. */
function encodeGiven(execution: RunningExecution, encodeIt: () => string | Promise<string>): string | Promise<string> {
  const judge = (error: unknown): never => {
    if (error instanceof PayloadCodecError) execution.blockUnrecordable(error);
    throw error;
  };
  try {
    const encoded = encodeIt();
    return typeof encoded === 'string' ? encoded : encoded.catch(judge);
  } catch (error) {
    return judge(error);
  }
}
