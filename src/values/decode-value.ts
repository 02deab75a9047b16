import { ValueDecodeError } from '../errors/value-errors.js';
import type { ErrorRegistry } from './error-registry.js';
import { ENVELOPE_KEY, FORMAT_VERSION, UNDEFINED_TEXT } from './format.js';
import { ValueReaderV1 } from './value-reader-v1.js';

/** Reads the content of an envelope. */
type EnvelopeReader = (content: unknown, errors: ErrorRegistry | undefined) => unknown;

/** One reader for every version of the format that was ever written. Entries are added, never removed. */
const READERS: ReadonlyMap<unknown, EnvelopeReader> = new Map([
  [1, (content: unknown, errors: ErrorRegistry | undefined) => new ValueReaderV1(errors).read(content)],
]);

const ENVELOPE_MARK = JSON.stringify(ENVELOPE_KEY);

/**
 * Turns a stored text back into the value. Errors in it come back as instances of the classes in `errors`, of the
 * built-in classes, or of `Error`.
 *
 * @throws {ValueDecodeError} for a text that is malformed or of a newer version of the format
 */
export function decodeValue(text: string, errors?: ErrorRegistry): unknown {
  if (text === UNDEFINED_TEXT) return undefined;
  const parsed = parseJson(text);
  // A text without the mark has no envelope, which is the common case and is found out fastest.
  if (!text.includes(ENVELOPE_MARK) || !isEnvelope(parsed)) return parsed;
  const read = READERS.get(parsed[ENVELOPE_KEY]);
  if (read === undefined) throw unknownVersion(parsed[ENVELOPE_KEY]);
  if (Object.keys(parsed).some((key) => key !== ENVELOPE_KEY && key !== 'value')) {
    throw new ValueDecodeError('The stored value is malformed: its envelope has an unknown part.');
  }
  return translateFailures(() => (Object.hasOwn(parsed, 'value') ? read(parsed['value'], errors) : undefined));
}

/**
 * Turns the stored text of something thrown back into it: an error, or whatever else was thrown.
 *
 * @throws {ValueDecodeError} for a text that is malformed or of a newer version of the format
 */
export function decodeError(text: string, errors?: ErrorRegistry): unknown {
  return decodeValue(text, errors);
}

/** Parses JSON; the platform's SyntaxError is not kept, since its message quotes the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ValueDecodeError(`The stored value is not valid JSON (${text.length} characters).`);
  }
}

function isEnvelope(parsed: unknown): parsed is Record<string, unknown> {
  return typeof parsed === 'object' && parsed !== null && Object.hasOwn(parsed, ENVELOPE_KEY);
}

function unknownVersion(version: unknown): ValueDecodeError {
  const found = typeof version === 'number' ? `version ${version}` : 'a version that is not a number';
  return new ValueDecodeError(
    `The stored value has ${found} of the format; this Holdfast reads versions up to ${FORMAT_VERSION}. ` +
      'Upgrade the process that reads it.',
  );
}

/** What the platform throws on malformed parts (`BigInt('x')`, an invalid pattern, no memory) quotes them, so it is not kept. */
function translateFailures(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    if (error instanceof ValueDecodeError) throw error;
    throw new ValueDecodeError('The stored value is malformed: a part of it is not what its tag says.');
  }
}
