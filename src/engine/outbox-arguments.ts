import type { OutsideOutboxAddOptions } from '../api/outbox.js';
import { PayloadTooLargeError } from '../errors/value-errors.js';
import { checkText } from './check-text.js';
import { checkKnownOptions } from './known-options.js';
import type { Serializer } from './serializer.js';

const LONGEST_EVENT_TOPIC_BYTES = 255;
const LONGEST_KEY_BYTES = 512;
/** Largest encoded payload of an event: a relay holds those that it delivers in memory. */
export const MAX_EVENT_PAYLOAD_BYTES = 2 ** 20;
const ADD_OPTIONS: ReadonlySet<string> = new Set<keyof OutsideOutboxAddOptions>(['key', 'transaction']);

/** The topic of an event. @throws InvalidArgumentError */
export function checkEventTopic(topic: unknown): string {
  return checkText(topic, LONGEST_EVENT_TOPIC_BYTES, 'The topic of an event');
}

/** What there is to check in an `outbox.add` without looking anywhere. @throws InvalidArgumentError */
export function checkOutboxAdd(
  topic: unknown,
  options: OutsideOutboxAddOptions,
): { readonly topic: string; readonly key: string | null } {
  checkKnownOptions(options, ADD_OPTIONS, 'outbox.add');
  const { key } = options;
  return {
    topic: checkEventTopic(topic),
    key: key === undefined ? null : checkText(key, LONGEST_KEY_BYTES, 'The key of an event'),
  };
}

/** @throws ValueNotSerializableError, PayloadTooLargeError, PayloadCodecError */
export function encodePayload(serializer: Serializer, payload: unknown): string | Promise<string> {
  const encoded = serializer.encode(payload);
  return typeof encoded === 'string' ? checkSize(encoded) : encoded.then(checkSize);
}

function checkSize(text: string): string {
  const actualBytes = Buffer.byteLength(text);
  if (actualBytes <= MAX_EVENT_PAYLOAD_BYTES) return text;
  throw new PayloadTooLargeError({ actualBytes, limitBytes: MAX_EVENT_PAYLOAD_BYTES });
}
