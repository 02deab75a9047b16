import { encodeValue } from './encode-value.js';
import { writeDescription } from './error-writer.js';
import { wrapInEnvelope } from './format.js';
import { DEFAULT_VALUE_LIMITS, MAX_ERROR_BYTES, type ValueLimits } from './limits.js';
import { kindOf } from './object-kind.js';
import { ValueWriter } from './value-writer.js';

/** For a value that defeats every attempt to look at it. */
const UNREADABLE_TEXT = wrapInEnvelope(
  '{"$error":{"name":"Error","message":"Something was thrown that could not be read."}}',
);

/**
 * Turns whatever was thrown into the text that is stored. Never throws.
 *
 * An error keeps its class's name, `name`, `message`, `stack`, `cause`, the `errors` of an AggregateError and its own
 * enumerable properties; what of these cannot be stored is left out and listed (`droppedPropertiesOf`). A thrown value
 * that is not an error is stored as itself, or described by an error if it cannot be. What is larger than 1 MiB (or than
 * `limits.maxBytes`, if that is less) is reduced to name, `code`, message and stack, the last two cut short, which is stored in any case.
 */
export function encodeError(thrown: unknown, limits: ValueLimits = DEFAULT_VALUE_LIMITS): string {
  const errorLimits = { maxBytes: Math.min(limits.maxBytes, MAX_ERROR_BYTES) };
  return attempt(() => encodeValue(thrown, errorLimits)) ?? attempt(() => encodeOutline(thrown)) ?? UNREADABLE_TEXT;
}

/** Needs no limit: everything that is written here is cut to a bounded length. */
function encodeOutline(thrown: unknown): string {
  const isError = typeof thrown === 'object' && thrown !== null && kindOf(thrown) === 'error';
  if (!isError) return wrapInEnvelope(`{"$error":${writeDescription(thrown)}}`);
  return wrapInEnvelope(new ValueWriter(Number.POSITIVE_INFINITY, 'outline').write(thrown));
}

function attempt(encode: () => string): string | undefined {
  try {
    return encode();
  } catch {
    return undefined;
  }
}
