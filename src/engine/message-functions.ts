import type { Duration } from '../api/duration.js';
import type { GetEventOptions, ReceiveOptions, SendOptions } from '../api/messages.js';
import { readEvent, receiveMessage, recordEvent, sendMessage } from './durable-messages.js';
import { parseDuration } from './duration.js';
import { checkGetEvent } from './event-reader.js';
import { checkKnownOptions } from './known-options.js';
import { checkEventKey, checkSend, checkTopic } from './message-arguments.js';
import { checkIsSchema, checkSchema } from './schema.js';
import { requireDurable } from './scope.js';
import { quietly } from './quietly.js';

const RECEIVE_OPTIONS: ReadonlySet<string> = new Set<keyof ReceiveOptions>(['timeout', 'schema']);

/**
 * Receives a message that was sent to this workflow: the one of this topic that waits for the longest time, or the next one
 * that comes. Each message is received once; several receivers get one each, in turn. It is received in the transaction that
 * records it: a message is neither lost nor doubled, whatever crashes.
 *
 * @param topic 1 to 255 bytes.
 * @returns The message; `undefined` when `timeout` has passed and none has come.
 * @throws SchemaViolationError when the message does not fit `schema`. It is received nevertheless.
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function receive<Message = unknown>(
  topic: string,
  options: ReceiveOptions<Message> & { readonly timeout: Duration },
): Promise<Message | undefined>;
export function receive<Message = unknown>(topic: string, options?: ReceiveOptions<Message>): Promise<Message>;
export function receive(topic: string, options: ReceiveOptions = {}): Promise<unknown> {
  return quietly(async () => {
    const execution = requireDurable('receive');
    checkTopic(topic);
    checkKnownOptions(options, RECEIVE_OPTIONS, 'receive');
    const schema = checkIsSchema(options.schema, 'schema');
    const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout');
    const message = await receiveMessage(execution, topic, timeoutMs);
    // Nothing came in time. A message that is itself undefined cannot be told from that.
    if (schema === undefined || (message === undefined && timeoutMs !== null)) return message;
    return checkSchema(schema, message, `message of topic "${topic}"`);
  });
}

/**
 * Sends a message to a workflow, this one included. It is sent in the transaction of the checkpoint: exactly once, and never
 * by an execution that has lost its workflow. Messages of one sender are received in the order in which they were sent.
 *
 * @param topic 1 to 255 bytes.
 * @throws WorkflowNotFoundError when there is no such workflow, ReceiverEndedError when it has ended.
 * @throws InvalidArgumentError, OutsideWorkflowError, ValueNotSerializableError, PayloadTooLargeError
 */
export function send(workflowId: string, topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
  return quietly(async () => {
    const execution = requireDurable('send');
    checkSend(workflowId, topic, options);
    return sendMessage(execution, workflowId, topic, message, options);
  });
}

/**
 * Sets an event of this workflow: a value under a key, for others to wait for and read. It is set in the transaction of the
 * checkpoint. Setting it again replaces the value.
 *
 * @param key 1 to 255 bytes.
 * @throws InvalidArgumentError, OutsideWorkflowError, ValueNotSerializableError, PayloadTooLargeError
 */
export function setEvent(key: string, value: unknown): Promise<void> {
  return quietly(async () => {
    const execution = requireDurable('setEvent');
    return recordEvent(execution, checkEventKey(key), value);
  });
}

/**
 * The current value of an event of any workflow; waits until it is set for the first time. What was read is recorded, so that
 * it is the same on replay.
 *
 * @returns The value; `undefined` when `timeout` has passed and it is not set.
 * @throws WorkflowNotFoundError when there is no such workflow.
 * @throws EventNotSetError when the workflow has ended without setting it.
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function getEvent<Value = unknown>(
  workflowId: string,
  key: string,
  options: GetEventOptions & { readonly timeout: Duration },
): Promise<Value | undefined>;
export function getEvent<Value = unknown>(workflowId: string, key: string, options?: GetEventOptions): Promise<Value>;
export function getEvent(workflowId: string, key: string, options: GetEventOptions = {}): Promise<unknown> {
  return quietly(async () => {
    const execution = requireDurable('getEvent');
    const { event, timeoutMs } = checkGetEvent(workflowId, key, options);
    return readEvent(execution, event, timeoutMs);
  });
}
