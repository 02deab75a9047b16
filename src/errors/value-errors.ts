import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/**
 * A value cannot be stored, because a later process could not be given it back: a function, a promise, an instance of
 * a class, something nested too deeply, or something that threw while it was read. Nothing was written.
 *
 * Remedy: return or pass plain data (convert the part at {@link path} first).
 */
export class ValueNotSerializableError extends HoldfastError {
  override readonly code = 'VALUE_NOT_SERIALIZABLE';
  override readonly name = 'ValueNotSerializableError';
  /** Where in the value the refused part is, for example `$.items[3].callback`; `$` is the value itself. */
  readonly path: string;

  constructor(message: string, details: { readonly path: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.path = details.path;
  }
}

/**
 * A value is larger than the limit for one stored value. Nothing was written.
 *
 * Remedy: keep large data elsewhere (object storage, a table of your own) and store a reference to it.
 */
export class PayloadTooLargeError extends HoldfastError {
  override readonly code = 'PAYLOAD_TOO_LARGE';
  override readonly name = 'PayloadTooLargeError';
  /**
   * Size in bytes of UTF-8. A lower bound where encoding stopped as soon as the limit was passed, so that a huge value
   * does not cost its whole size in memory once more.
   */
  readonly actualBytes: number;
  /** The limit that was passed, in bytes of UTF-8. */
  readonly limitBytes: number;

  constructor(details: { readonly actualBytes: number; readonly limitBytes: number }, options?: HoldfastErrorOptions) {
    super(
      `The encoded value has at least ${details.actualBytes} bytes; the limit is ${details.limitBytes} bytes. ` +
        'Keep large data elsewhere and store a reference to it.',
      options,
    );
    this.actualBytes = details.actualBytes;
    this.limitBytes = details.limitBytes;
  }
}

/**
 * A stored text cannot be turned back into a value: it is malformed, was written by a newer version of the format, or
 * through a payload codec that this process does not have. Only the item that holds the text is affected.
 *
 * The message never quotes the text, which may hold secrets. Remedy: upgrade, configure {@link requiredCodec}, or read
 * the raw text.
 */
export class ValueDecodeError extends HoldfastError {
  override readonly code = 'VALUE_UNREADABLE';
  override readonly name = 'ValueDecodeError';
  /** Name of the payload codec that the text was written with, where that is what is missing. */
  readonly requiredCodec: string | undefined;

  constructor(message: string, options?: HoldfastErrorOptions & { readonly requiredCodec?: string }) {
    super(message, options);
    this.requiredCodec = options?.requiredCodec;
  }
}

/**
 * A payload codec (encryption, compression) failed on a text: its own error is the `cause`. Whether trying again helps
 * depends on the codec; the value itself is not at fault.
 */
export class PayloadCodecError extends HoldfastError {
  override readonly code = 'PAYLOAD_CODEC_FAILED';
  override readonly name = 'PayloadCodecError';
  /** Name of the codec that failed. */
  readonly codec: string;

  constructor(message: string, details: { readonly codec: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.codec = details.codec;
  }
}
