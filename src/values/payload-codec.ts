/**
 * Stands between Holdfast and the database, for encryption or compression: every input, output, error, message and
 * event passes through it. What it returns is all that is stored of the value.
 *
 * @example
 * const encryption: PayloadCodec = {
 *   name: 'aes-2026',
 *   encode: (text) => encrypt(text, key),
 *   decode: (data) => decrypt(data, key),
 * };
 */
export interface PayloadCodec {
  /** Stored with every payload, to find the codec again: give each key or algorithm a name of its own. */
  readonly name: string;
  /** Turns the text of a value into the text that is stored. */
  encode(text: string): string | Promise<string>;
  /** The inverse of {@link encode}. */
  decode(data: string): string | Promise<string>;
}
