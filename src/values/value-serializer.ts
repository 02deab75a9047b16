import { PayloadCodecError, ValueDecodeError } from '../errors/value-errors.js';
import { decodeValue, parseJson } from './decode-value.js';
import { encodeError } from './encode-error.js';
import { encodeValue, withinLimits } from './encode-value.js';
import type { ErrorRegistry } from './error-registry.js';
import { CODEC_KEY } from './format.js';
import { DEFAULT_MAX_VALUE_BYTES, type ValueLimits } from './limits.js';
import type { PayloadCodec } from './payload-codec.js';

/** How a {@link ValueSerializer} works. */
export interface ValueSerializerOptions {
  /**
   * Payload codecs. The first one writes; all of them read, so that keys and algorithms can be replaced while older
   * payloads remain. Without any, values are stored as they are and nothing is asynchronous.
   */
  readonly codecs?: readonly PayloadCodec[];
  /** Largest text of one value, in bytes of UTF-8, before and after the codec. Default 16 MiB. */
  readonly maxBytes?: number;
  /** The classes that stored errors may come back as. Default: the built-in ones. */
  readonly errors?: ErrorRegistry;
}

const CODEC_MARK = JSON.stringify(CODEC_KEY);

/**
 * All that the engine needs to store values: the text form, the limit, the error classes and the payload codec.
 *
 * Results are synchronous unless a codec is involved that answers with a promise. So test for it instead of awaiting
 * always: decoded values are never promises.
 *
 *     const encoded = serializer.encode(value);
 *     const text = typeof encoded === 'string' ? encoded : await encoded;
 */
export class ValueSerializer {
  readonly #limits: ValueLimits;
  readonly #errors: ErrorRegistry | undefined;
  readonly #writingCodec: PayloadCodec | undefined;
  readonly #codecs = new Map<string, PayloadCodec>();

  /** @throws {TypeError} for two codecs of one name */
  constructor(options: ValueSerializerOptions = {}) {
    this.#limits = { maxBytes: options.maxBytes ?? DEFAULT_MAX_VALUE_BYTES };
    this.#errors = options.errors;
    this.#writingCodec = options.codecs?.[0];
    for (const codec of options.codecs ?? []) {
      if (this.#codecs.has(codec.name)) throw new TypeError(`Two payload codecs have the name '${codec.name}'.`);
      this.#codecs.set(codec.name, codec);
    }
  }

  /**
   * Text of a value: an input, an output, a message.
   *
   * @throws {ValueNotSerializableError} always at once, even with an asynchronous codec
   * @throws {PayloadTooLargeError} likewise, or as a rejection if only the codec's output is too large
   * @throws {PayloadCodecError} if the codec fails
   */
  encode(value: unknown): string | Promise<string> {
    const text = encodeValue(value, this.#limits);
    if (this.#writingCodec === undefined) return text;
    return this.#throughCodec(this.#writingCodec, text, (wrapped) => withinLimits(wrapped, this.#limits));
  }

  /**
   * Text of whatever was thrown; there is one for everything.
   *
   * @throws {PayloadCodecError} if the codec fails, which is the only way to fail
   */
  encodeError(thrown: unknown): string | Promise<string> {
    const text = encodeError(thrown, this.#limits);
    if (this.#writingCodec === undefined) return text;
    // An error must always find its place, and its text is bounded, so what the codec adds is not held against it.
    return this.#throughCodec(this.#writingCodec, text, (wrapped) => wrapped);
  }

  /**
   * The value, or whatever was thrown, that a text was made of; a promise of it if the text was written through a codec
   * that answers with a promise (test with `instanceof Promise`).
   *
   * @throws {ValueDecodeError} for a malformed text, a newer format, or a codec that is not configured
   * @throws {PayloadCodecError} if the codec fails
   */
  decode(text: string): unknown {
    if (!text.includes(CODEC_MARK)) return decodeValue(text, this.#errors);
    const parsed = parseJson(text);
    if (typeof parsed !== 'object' || parsed === null || !Object.hasOwn(parsed, CODEC_KEY)) {
      return decodeValue(text, this.#errors);
    }
    return this.#decodeThroughCodec(parsed as Record<string, unknown>);
  }

  #throughCodec(codec: PayloadCodec, text: string, finish: (wrapped: string) => string): string | Promise<string> {
    const name = JSON.stringify(codec.name);
    const result = callCodec(codec, 'encode', text);
    const wrap = (data: string): string => finish(`{"${CODEC_KEY}":${name},"data":${JSON.stringify(data)}}`);
    return typeof result === 'string' ? wrap(result) : result.then(wrap);
  }

  #decodeThroughCodec(wrapper: Record<string, unknown>): unknown {
    const { [CODEC_KEY]: name, data } = wrapper;
    if (typeof name !== 'string' || typeof data !== 'string') {
      throw new ValueDecodeError('The stored value is malformed: its payload codec or data is not text.');
    }
    const codec = this.#codecs.get(name);
    if (codec === undefined) {
      throw new ValueDecodeError(
        `The stored value was written through the payload codec '${name}', which is not configured here. ` +
          'Add it to the codecs of this process.',
        { requiredCodec: name },
      );
    }
    const text = callCodec(codec, 'decode', data);
    return typeof text === 'string' ? decodeValue(text, this.#errors) : text.then((t) => decodeValue(t, this.#errors));
  }
}

/** Runs one side of a codec; every way in which it can fail becomes a {@link PayloadCodecError}. */
function callCodec(codec: PayloadCodec, side: 'encode' | 'decode', text: string): string | Promise<string> {
  const failed = (cause: unknown): PayloadCodecError =>
    new PayloadCodecError(
      `The payload codec '${codec.name}' failed to ${side} a value.`,
      { codec: codec.name },
      { cause },
    );
  const checked = (result: unknown): string => {
    if (typeof result === 'string') return result;
    throw failed(new TypeError(`The codec returned a value of type ${typeof result} instead of text.`));
  };
  let result: unknown;
  try {
    result = codec[side](text);
  } catch (error) {
    throw failed(error);
  }
  if (!isThenable(result)) return checked(result);
  return Promise.resolve(result).then(checked, (error: unknown) => {
    throw failed(error);
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
