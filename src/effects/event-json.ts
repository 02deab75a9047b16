import { types } from 'node:util';
import type { OutboxEvent } from '../api/outbox.js';
import { NonRetryableError } from '../errors/step-errors.js';

/**
 * The text of an event for a receiver that knows only JSON. Dates and URLs become texts, and properties that are undefined are left
 * out; anything else that JSON would lose without a word is refused.
 *
 * @throws NonRetryableError
 */
export function jsonOf({ id, topic, key, payload, workflowId, addedAt }: OutboxEvent): string {
  let text: string;
  try {
    text = JSON.stringify({ id, topic, key, payload: payload ?? null, workflowId, addedAt }, refuseLosses);
  } catch (cause) {
    if (cause instanceof NonRetryableError) throw cause;
    // A circular reference.
    throw new NonRetryableError('The payload is no JSON, and a webhook sends nothing else.', { cause });
  }
  return text;
}

/** Sees the value itself, where `toJSON` has made something else of it: of bytes, an object. */
function refuseLosses(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  const value = this[key];
  const isLost =
    typeof value === 'bigint' ||
    (typeof value === 'number' && !Number.isFinite(value)) ||
    types.isMap(value) ||
    types.isSet(value) ||
    types.isNativeError(value) ||
    types.isRegExp(value) ||
    types.isAnyArrayBuffer(value) ||
    ArrayBuffer.isView(value);
  if (!isLost) return json;
  throw new NonRetryableError(
    'The payload holds a value that JSON cannot, and a webhook sends JSON. Add such events as plain data, or use a handler of your own.',
  );
}
