/**
 * The stored form of a value.
 *
 * A value that JSON can hold exactly is stored as JSON, nothing added. Any other value is stored in an envelope:
 *
 *     {"$holdfast":1,"value":{"id":"a-1","paidAt":{"$date":"2026-01-02T03:04:05.000Z"}}}
 *
 * `$holdfast` is the version of the format; an envelope without `value` holds `undefined`. Inside an envelope, an object
 * whose only key begins with one `$` is a tag (below), and a key of the user's that begins with `$` has one more `$` put
 * in front. So everything that JSON can say stays readable, for people and for SQL, next to what it cannot say.
 *
 * | tag | holds |
 * | --- | --- |
 * | `$undefined` | `true` |
 * | `$number` | `"NaN"`, `"Infinity"`, `"-Infinity"`, `"-0"` |
 * | `$bigint` | decimal digits |
 * | `$date` | ISO 8601, or `null` for an invalid date |
 * | `$regexp` | `[source, flags]` |
 * | `$url` | the URL |
 * | `$boxed` | the primitive inside a `Number`, `String`, `Boolean` or `BigInt` object |
 * | `$map` | `[[key, value], …]` |
 * | `$set` | `[value, …]` |
 * | `$bytes` | `[class, base64]` with the class `ArrayBuffer`, `DataView`, `Buffer` or that of a typed array |
 * | `$nullproto` | the properties of an object without prototype |
 * | `$holes` | inside an array: how many elements are missing here |
 * | `$array` | `{items, props}`: an array that also has named properties, such as the result of `String.match` |
 * | `$error` | `{name, class?, message, stack?, cause?, errors?, props?, dropped?}` |
 * | `$ref` | the n-th object of the value, counted from 0 in reading order: a shared or circular reference |
 *
 * Texts of every version that was ever released stay readable: a change of this table is a new version with a reader of
 * its own beside the old ones.
 */
export const FORMAT_VERSION = 1;

/** Key of the envelope that holds the format's version. */
export const ENVELOPE_KEY = '$holdfast';

/** Key of the wrapper around a text that went through a payload codec: it holds the codec's name. */
export const CODEC_KEY = '$codec';

/** The envelope of `undefined`, the most common value of all: what a step without result returns. */
export const UNDEFINED_TEXT = `{"${ENVELOPE_KEY}":${FORMAT_VERSION}}`;

/** Puts the text of a value that needs it into the envelope of the current version. */
export function wrapInEnvelope(body: string): string {
  return `{"${ENVELOPE_KEY}":${FORMAT_VERSION},"value":${body}}`;
}
