import type { SendOptions } from '../api/messages.js';
import type { Update, UpdateOptions } from '../api/signals.js';
import { EventNotSetError, ReceiverEndedError, UpdateTimeoutError } from '../errors/message-errors.js';
import type { EventAddress } from '../store/store.js';
import { recordValue } from './durable-calls.js';
import { readEvent, sendMessage } from './durable-messages.js';
import type { RunningExecution } from './execution-host.js';
import { checkSchema } from './schema.js';
import type { Serializer } from './serializer.js';
import {
  checkUpdate,
  requestIdOf,
  resultOfUpdate,
  updateKey,
  updateTopic,
  type UpdateReply,
} from './update-protocol.js';

/** How an update is sent, and its reply waited for: inside a workflow as durable calls, outside as plain ones. */
export interface UpdateChannel {
  readonly serializer: Serializer;
  newId(): Promise<string>;
  send(workflowId: string, topic: string, message: unknown, options: SendOptions): Promise<void>;
  /** `undefined` when it has not come in time. */
  awaitReply(reply: EventAddress, timeoutMs: number | null, signal: AbortSignal | undefined): Promise<unknown>;
}

export function durableChannel(execution: RunningExecution): UpdateChannel {
  return {
    serializer: execution.host.serializer,
    newId: async () => (await recordValue(execution, 'uuid', () => execution.runtime.randomUuid())) as string,
    send: (workflowId, topic, message, options) => sendMessage(execution, workflowId, topic, message, options),
    awaitReply: (reply, timeoutMs) => readEvent(execution, reply, timeoutMs),
  };
}

/** Asks a workflow to carry out an update, and returns what its handler returned. */
export async function sendUpdate<Sent, Result>(
  channel: UpdateChannel,
  workflowId: string,
  update: Pick<Update<Sent, Result, unknown>, 'name' | 'input'>,
  input: Sent,
  options: UpdateOptions,
): Promise<Result> {
  const { name, input: schema } = update;
  const timeoutMs = checkUpdate(options);
  options.signal?.throwIfAborted();
  if (schema !== undefined) await checkSchema(schema, input, `input of update "${name}"`);
  const updateId = options.updateId ?? (await channel.newId());
  const requestId = requestIdOf(name, updateId);
  const key = updateKey(requestId);
  // The key lets it through once, so that it is carried out once.
  await channel.send(workflowId, updateTopic(name), { updateId: requestId, input }, { idempotencyKey: key });
  const reply = await channel.awaitReply({ workflowId, key }, timeoutMs, options.signal).catch((error: unknown) => {
    if (!(error instanceof EventNotSetError)) throw error;
    const how = error.status === 'CONTINUED' ? 'continued as new' : 'ended';
    throw new ReceiverEndedError(`Workflow "${workflowId}" has ${how} without answering update "${name}".`, {
      status: error.status,
    });
  });
  if (reply === undefined) {
    throw new UpdateTimeoutError(
      `Workflow "${workflowId}" has not answered update "${name}" in time. Ask again with updateId "${updateId}".`,
      { updateId },
    );
  }
  return (await resultOfUpdate(name, reply as UpdateReply, channel.serializer)) as Result;
}
