import type { SendOptions } from '../api/messages.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { checkText } from './check-text.js';
import { checkKnownOptions } from './known-options.js';
import { checkWorkflowId } from './workflow-id.js';

/** Leaves room for a prefix of Holdfast's own. */
export const LONGEST_DEFINED_NAME_BYTES = 200;
const LONGEST_TOPIC_BYTES = 255;
const LONGEST_EVENT_KEY_BYTES = 255;
const LONGEST_IDEMPOTENCY_KEY_BYTES = 512;
const SEND_OPTIONS: ReadonlySet<string> = new Set<keyof SendOptions>(['idempotencyKey', 'transaction']);
/** Topics and events of Holdfast's own. */
export const RESERVED_PREFIX = 'holdfast:';

/** @throws InvalidArgumentError */
export function checkTopic(topic: unknown): string {
  return notReserved(checkText(topic, LONGEST_TOPIC_BYTES, 'A topic'), 'A topic');
}

/** @throws InvalidArgumentError */
export function checkEventKey(key: unknown): string {
  return notReserved(checkText(key, LONGEST_EVENT_KEY_BYTES, 'The key of an event'), 'The key of an event');
}

function checkIdempotencyKey(key: unknown): string {
  return notReserved(checkText(key, LONGEST_IDEMPOTENCY_KEY_BYTES, 'idempotencyKey'), 'idempotencyKey');
}

/** What there is to check in a `send` without looking anywhere. @throws InvalidArgumentError */
export function checkSend(workflowId: unknown, topic: unknown, options: SendOptions): void {
  checkKnownOptions(options, SEND_OPTIONS, 'send');
  checkWorkflowId(workflowId);
  checkTopic(topic);
  if (options.idempotencyKey !== undefined) checkIdempotencyKey(options.idempotencyKey);
}

/** The name of a query or an update. @throws InvalidArgumentError */
export function checkDefinedName(name: unknown, what: string): string {
  return checkText(name, LONGEST_DEFINED_NAME_BYTES, what);
}

function notReserved(text: string, what: string): string {
  if (text.startsWith(RESERVED_PREFIX)) {
    throw new InvalidArgumentError(`${what} must not begin with "${RESERVED_PREFIX}": those are Holdfast's own.`);
  }
  return text;
}
