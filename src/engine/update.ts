import type { Update, UpdateDefinitionOptions } from '../api/signals.js';
import type { StandardSchema } from '../api/standard-schema.js';
import { ValueDecodeError } from '../errors/value-errors.js';
import { receiveMessage, recordEventOf } from './durable-messages.js';
import type { RunningExecution } from './execution-host.js';
import { checkIsFunction, checkKnownOptions } from './known-options.js';
import { checkDefinedName } from './message-arguments.js';
import { checkIsSchema, checkSchema } from './schema.js';
import { requireDurable, runInScope } from './scope.js';
import { updateKey, updateTopic, type UpdateReply, type UpdateRequest } from './update-protocol.js';

const HANDLE_OPTIONS: ReadonlySet<string> = new Set(['validate']);
const UPDATE_OPTIONS: ReadonlySet<string> = new Set<keyof UpdateDefinitionOptions<unknown, unknown>>(['input']);

/**
 * A change of a running workflow that is checked, carried out and acknowledged. Define it once, beside the workflow, and use
 * it on both sides.
 *
 * @param name 1 to 200 bytes.
 * @throws InvalidArgumentError
 * @example
 * const setLimit = defineUpdate<number, string>('setLimit');
 * setLimit.handle((limit) => `limit is ${limit}`, { validate: (limit) => { if (limit < 0) throw new RangeError('negative'); } });
 * await handle.update(setLimit, 7); // outside
 */
export function defineUpdate<Sent, Result = void, Received = Sent>(
  name: string,
  options: UpdateDefinitionOptions<Sent, Received> = {},
): Update<Sent, Result, Received> {
  checkDefinedName(name, 'The name of an update');
  checkKnownOptions(options, UPDATE_OPTIONS, 'defineUpdate');
  checkIsSchema(options.input, 'input');
  const { input } = options;
  return {
    kind: 'update',
    name,
    ...(input === undefined ? {} : { input }),
    handle: (carryOut, settings = {}) => {
      checkIsFunction(carryOut, 'What update.handle takes first');
      checkKnownOptions(settings, HANDLE_OPTIONS, 'update.handle');
      const { validate } = settings;
      if (validate !== undefined) checkIsFunction(validate, 'The option "validate"');
      const execution = requireDurable('update.handle');
      const handler = { name, input, carryOut, validate } as UpdateHandler;
      serve(execution, handler).catch((error: unknown) => {
        execution.host.logger.warn('A workflow has stopped carrying out updates.', {
          workflowId: execution.workflowId,
          update: name,
          code: (error as { code?: string } | null)?.code,
        });
      });
    },
  };
}

interface UpdateHandler {
  readonly name: string;
  readonly input: StandardSchema | undefined;
  readonly carryOut: (input: unknown) => unknown;
  readonly validate: ((input: unknown) => unknown) | undefined;
}

/** Carries out one update after the other until the execution ends. All of it is durable calls, so a replay does the same. */
async function serve(execution: RunningExecution, handler: UpdateHandler): Promise<void> {
  for (;;) {
    let request: UpdateRequest;
    try {
      request = (await receiveMessage(execution, updateTopic(handler.name), null)) as UpdateRequest;
    } catch (error) {
      if (!execution.isRunning) return;
      // One that nobody can read: there is nobody to be told.
      if (error instanceof ValueDecodeError) continue;
      throw error;
    }
    try {
      await acknowledge(execution, request.updateId, await carryOut(execution, handler, request.input));
    } catch (error) {
      if (!execution.isRunning) return;
      throw error;
    }
  }
}

/** What came of it, to be encoded yet. */
type Carried =
  | { readonly outcome: 'done'; readonly result: unknown }
  | { readonly outcome: 'failed' | 'rejected'; readonly thrown: unknown };

async function carryOut(execution: RunningExecution, handler: UpdateHandler, sent: unknown): Promise<Carried> {
  const { name, validate } = handler;
  let input = sent;
  try {
    if (handler.input !== undefined) input = await checkSchema(handler.input, sent, `input of update "${name}"`);
    if (validate !== undefined) {
      const scope = { execution, step: undefined, readOnly: `the validation of update "${name}"` };
      await runInScope(scope, () => validate(input));
    }
  } catch (error) {
    return { outcome: 'rejected', thrown: error };
  }
  try {
    return { outcome: 'done', result: await handler.carryOut(input) };
  } catch (error) {
    execution.assertRunning();
    return { outcome: 'failed', thrown: error };
  }
}

async function acknowledge(execution: RunningExecution, updateId: string, carried: Carried): Promise<void> {
  const key = updateKey(updateId);
  try {
    await recordEventOf(execution, key, () => replyOf(execution, carried));
  } catch (error) {
    execution.assertRunning();
    // A result that cannot be stored: that is what the caller gets.
    await recordEventOf(execution, key, () => replyOf(execution, { outcome: 'failed', thrown: error }));
  }
}

/** Made inside the call that records it: no code of the workflow may overtake an encoding that takes its time. */
async function replyOf(execution: RunningExecution, carried: Carried): Promise<UpdateReply> {
  if (carried.outcome === 'done') return carried;
  return { outcome: carried.outcome, error: await execution.host.serializer.encodeError(carried.thrown) };
}
