import type { StepContext, WorkflowContext } from '../api/context.js';
import type { Duration } from '../api/duration.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import { continueAsNew as continueExecution } from './continue-as-new.js';
import { durableSleep, recordValue } from './durable-calls.js';
import { workflowDefinitionOf } from './definitions.js';
import { parseDuration } from './duration.js';
import { deprecatePatch as passPatch, patched as takePatch } from './patches.js';
import { currentScope, requireDurable } from './scope.js';
import { quietly } from './quietly.js';

/**
 * The running step: its number, attempt, idempotency key and abort signal.
 * @throws OutsideWorkflowError outside a step body.
 */
export function step(): StepContext {
  const context = currentScope()?.step;
  if (context === undefined) {
    throw new OutsideWorkflowError('step() works inside the body of a step that a workflow has called.');
  }
  return context;
}

/**
 * The running workflow: its ID, epoch, attempt and abort signal. Works in the workflow and in its steps.
 * @throws OutsideWorkflowError outside a workflow.
 */
export function workflow(): WorkflowContext {
  const scope = currentScope();
  if (scope === undefined) throw new OutsideWorkflowError('workflow() works inside a workflow only.');
  return scope.execution.context();
}

/**
 * Sleeps durably. The moment of waking is fixed at the first run, by the database's clock: a crash neither lengthens nor
 * restarts the sleep, and it never ends early.
 *
 * @param length How long, or until when.
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function sleep(length: Duration | Date): Promise<void> {
  return quietly(async () => {
    const execution = requireDurable('sleep');
    if (!(length instanceof Date)) {
      return durableSleep(execution, { ms: parseDuration(length, 'The length of a sleep') });
    }
    const untilMs = length.getTime();
    if (Number.isNaN(untilMs)) throw new InvalidArgumentError('The end of a sleep is an invalid Date.');
    return durableSleep(execution, { untilMs });
  });
}

/** The time, by the database's clock as far as this executor knows it; recorded, so that it is the same on replay. */
export function now(): Promise<Date> {
  return quietly(async () => {
    const execution = requireDurable('now');
    return (await recordValue(execution, 'now', () => new Date(execution.host.clockMs()))) as Date;
  });
}

/** A number from 0 (included) to 1 (excluded); recorded, so that it is the same on replay. Not for secrets. */
export function random(): Promise<number> {
  return quietly(async () => {
    const execution = requireDurable('random');
    return (await recordValue(execution, 'random', () => execution.runtime.random())) as number;
  });
}

/** A random UUID of version 4; recorded, so that it is the same on replay. */
export function uuid(): Promise<string> {
  return quietly(async () => {
    const execution = requireDurable('uuid');
    return (await recordValue(execution, 'uuid', () => execution.runtime.randomUuid())) as string;
  });
}

/**
 * Whether this workflow takes a changed path: true for one that comes to this place for the first time, which records a marker;
 * false for one that has passed it on older code, which goes on as recorded. Each call stands for itself.
 *
 * @param name Name of the change, 1 to 255 bytes; the marker has it.
 * @example
 * if (await patched('charge-in-euro')) await Shop.chargeEuro(order);
 * else await Shop.charge(order);
 *
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function patched(name: string): Promise<boolean> {
  return quietly(async () => {
    return takePatch(requireDurable('patched'), name);
  });
}

/**
 * Takes the place of `patched` once no workflow is under way that passed it on the older code: the changed path is the only one
 * left, markers that are recorded are passed over, and none are recorded any more. Once no workflow with a marker is under way,
 * the call can go.
 *
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function deprecatePatch(name: string): Promise<void> {
  return quietly(async () => {
    return passPatch(requireDurable('deprecatePatch'), name);
  });
}

/**
 * Ends this run of the workflow and has it begin anew, with other arguments and an empty history, under the same ID: for
 * workflows that go on for very long. Handles keep waiting; messages that have not been received and events stay; children go
 * on. Never returns: put `return` in front of it.
 *
 * @param self The workflow that is running, so that the arguments are checked against it.
 * @example
 * const poll = defineWorkflow('poll', async (cursor: number): Promise<void> => {
 *   for (let round = 0; round < 1_000; round++) cursor = await runStep('fetch', () => fetchFrom(cursor));
 *   return continueAsNew(poll, cursor);
 * });
 *
 * @throws InvalidArgumentError when `self` is another workflow, SchemaViolationError, ValueNotSerializableError,
 *   PayloadTooLargeError, StepUnderWayError: the run goes on then. OutsideWorkflowError.
 */
export function continueAsNew<Arguments extends unknown[]>(
  self: (...args: Arguments) => Promise<unknown>,
  ...args: Arguments
): Promise<never> {
  return quietly(async () => {
    return continueExecution(requireDurable('continueAsNew'), workflowDefinitionOf(self), args);
  });
}
