import { Buffer } from 'node:buffer';

import { PayloadTooLargeError } from '../errors/value-errors.js';
import { UNDEFINED_TEXT, wrapInEnvelope } from './format.js';
import { DEFAULT_VALUE_LIMITS, type ValueLimits } from './limits.js';
import { isPlainJson, isPlainNumber } from './plain-json.js';
import { ValueWriter } from './value-writer.js';

/** A code unit of UTF-16 never takes more than this many bytes of UTF-8. */
const MAX_BYTES_PER_CODE_UNIT = 3;

/**
 * Turns a value into the text that is stored: JSON where JSON can hold the value exactly, otherwise the envelope that
 * `format.ts` describes.
 *
 * Supported is what `structuredClone` takes (without `Blob`, `SharedArrayBuffer` and other objects of the platform), and
 * errors, `URL` and Node's `Buffer`. As there, non-enumerable and symbol-keyed properties are left out, getters are
 * read, frozen comes back unfrozen; a view comes back with a buffer of its own that holds the bytes it showed.
 *
 * Objects may be read twice, so a getter should not have effects.
 *
 * @throws {ValueNotSerializableError} for a function, symbol, promise, stream, instance of a class, a property whose getter throws, or nesting past `MAX_DEPTH`
 * @throws {PayloadTooLargeError} for a text past `limits.maxBytes`
 */
export function encodeValue(value: unknown, limits: ValueLimits = DEFAULT_VALUE_LIMITS): string {
  switch (typeof value) {
    case 'undefined':
      return UNDEFINED_TEXT;
    case 'string':
      // Before the text is made, so that it is not made in vain.
      if (value.length > limits.maxBytes) throw tooLarge(Buffer.byteLength(value), limits);
      return withinLimits(JSON.stringify(value), limits);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      return isPlainNumber(value) ? String(value) : encodeWithWriter(value, limits);
    case 'object':
      return value === null ? 'null' : withinLimits(stringifyPlain(value) ?? encodeWithWriter(value, limits), limits);
    default:
      return withinLimits(encodeWithWriter(value, limits), limits);
  }
}

/** Refuses a text that is too large to store; returns it otherwise. */
export function withinLimits(text: string, limits: ValueLimits): string {
  if (text.length * MAX_BYTES_PER_CODE_UNIT <= limits.maxBytes) return text;
  const actualBytes = Buffer.byteLength(text);
  if (actualBytes > limits.maxBytes) throw tooLarge(actualBytes, limits);
  return text;
}

/** The text of a plain object; undefined if the writer must look at it, also to tell what is wrong with it. */
function stringifyPlain(value: object): string | undefined {
  try {
    return isPlainJson(value) ? JSON.stringify(value) : undefined;
  } catch {
    return undefined;
  }
}

function encodeWithWriter(value: unknown, limits: ValueLimits): string {
  const writer = new ValueWriter(limits.maxBytes);
  const body = writer.write(value);
  return writer.needsEnvelope ? wrapInEnvelope(body) : body;
}

function tooLarge(actualBytes: number, limits: ValueLimits): PayloadTooLargeError {
  return new PayloadTooLargeError({ actualBytes, limitBytes: limits.maxBytes });
}
