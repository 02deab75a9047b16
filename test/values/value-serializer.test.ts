import { describe, expect, test } from 'vitest';

import {
  PayloadCodecError,
  PayloadTooLargeError,
  ValueDecodeError,
  ValueNotSerializableError,
} from '../../src/errors/value-errors.js';
import { ErrorRegistry, ValueSerializer, type PayloadCodec } from '../../src/values/index.js';

const base64: PayloadCodec = {
  name: 'base64',
  encode: (text) => Buffer.from(text).toString('base64'),
  decode: (data) => Buffer.from(data, 'base64').toString(),
};

const slowHex: PayloadCodec = {
  name: 'hex',
  encode: async (text) => Buffer.from(text).toString('hex'),
  decode: async (data) => Buffer.from(data, 'hex').toString(),
};

class DeclinedError extends Error {
  override readonly name = 'DeclinedError';
}

describe('a serializer without payload codec', () => {
  test('is synchronous and stores what the codec of values makes', () => {
    const serializer = new ValueSerializer();
    expect(serializer.encode({ a: 1 })).toBe('{"a":1}');
    expect(serializer.decode('{"a":1}')).toEqual({ a: 1 });
    expect(serializer.encodeError('x')).toBe('"x"');
  });

  test('rebuilds errors of the classes it was given', () => {
    const serializer = new ValueSerializer({ errors: new ErrorRegistry([DeclinedError]) });
    expect(serializer.decode(serializer.encodeError(new DeclinedError('no')) as string)).toBeInstanceOf(DeclinedError);
  });

  test('C52: holds the limit it was given', () => {
    expect(() => new ValueSerializer({ maxBytes: 10 }).encode('x'.repeat(20))).toThrow(PayloadTooLargeError);
  });
});

describe('a payload codec', () => {
  test('stores the name of the codec and its output, nothing of the value', () => {
    const serializer = new ValueSerializer({ codecs: [base64] });
    const text = serializer.encode({ secret: 'hunter2' });
    expect(text).toBe(`{"$codec":"base64","data":"${Buffer.from('{"secret":"hunter2"}').toString('base64')}"}`);
    expect(serializer.decode(text as string)).toEqual({ secret: 'hunter2' });
  });

  test('may answer later', async () => {
    const serializer = new ValueSerializer({ codecs: [slowHex] });
    const encoded = serializer.encode({ at: new Date(5) });
    expect(encoded).toBeInstanceOf(Promise);
    const decoded = serializer.decode(await encoded);
    expect(decoded).toBeInstanceOf(Promise);
    expect(await decoded).toEqual({ at: new Date(5) });
  });

  test('is used for errors too', async () => {
    const serializer = new ValueSerializer({ codecs: [slowHex] });
    const text = await serializer.encodeError(new TypeError('secret'));
    expect(text).not.toContain('secret');
    expect(await serializer.decode(text)).toBeInstanceOf(TypeError);
  });

  test('can be replaced while older payloads remain', async () => {
    const older = new ValueSerializer({ codecs: [base64] });
    const newer = new ValueSerializer({ codecs: [slowHex, base64] });
    expect(newer.decode(older.encode('old') as string)).toBe('old');
    expect(newer.decode('"from before any codec"')).toBe('from before any codec');
    expect(await newer.encode('new')).toContain('"$codec":"hex"');
  });

  test('that is not configured is named by the error', () => {
    const text = new ValueSerializer({ codecs: [base64] }).encode('x') as string;
    expect(() => new ValueSerializer().decode(text)).toThrow(ValueDecodeError);
    expect(() => new ValueSerializer().decode(text)).toThrow(
      expect.objectContaining({ code: 'VALUE_UNREADABLE', requiredCodec: 'base64' }),
    );
  });

  test("a user's value that looks like the wrapper is only a value", () => {
    for (const codecs of [[], [base64]]) {
      const serializer = new ValueSerializer({ codecs });
      for (const value of [{ $codec: 'base64', data: '' }, { nested: { $codec: 'x' } }, '"$codec"', { $holdfast: 9 }]) {
        expect(serializer.decode(serializer.encode(value) as string)).toEqual(value);
      }
    }
  });

  test.each<[what: string, codec: Partial<PayloadCodec>]>([
    [
      'throws',
      {
        encode: () => {
          throw new Error('no key');
        },
      },
    ],
    ['rejects', { encode: () => Promise.reject(new Error('no key')) }],
    ['returns no text', { encode: () => 5 as never }],
    ['answers without text', { encode: async () => undefined as never }],
  ])('that %s fails with an error that names it', async (_, part) => {
    const serializer = new ValueSerializer({ codecs: [{ ...base64, ...part }] });
    const failure = await (async () => serializer.encode('x'))().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(PayloadCodecError);
    expect(failure).toMatchObject({ code: 'PAYLOAD_CODEC_FAILED', codec: 'base64', cause: expect.any(Error) as Error });
  });

  test('that fails to decode fails with an error that names it, and garbage from it is unreadable', async () => {
    const text = new ValueSerializer({ codecs: [base64] }).encode('x') as string;
    const decodeWith = async (decode: PayloadCodec['decode']): Promise<unknown> =>
      new ValueSerializer({ codecs: [{ ...base64, decode }] }).decode(text);
    await expect(decodeWith(() => Promise.reject(new Error('wrong key')))).rejects.toThrow(PayloadCodecError);
    await expect(decodeWith(async () => 'garbage')).rejects.toThrow(ValueDecodeError);
    await expect(decodeWith(() => 'garbage')).rejects.toThrow(ValueDecodeError);
  });

  test('sees no value that is refused, and is itself held to the limit', async () => {
    const inflating: PayloadCodec = {
      name: 'inflating',
      encode: async (text) => text.repeat(10),
      decode: (data) => data,
    };
    const serializer = new ValueSerializer({ codecs: [inflating], maxBytes: 200 });
    expect(() => serializer.encode(() => 1)).toThrow(ValueNotSerializableError);
    await expect(serializer.encode('x'.repeat(50))).rejects.toThrow(PayloadTooLargeError);
    expect(await serializer.encodeError('x'.repeat(50))).toContain('inflating');
  });

  test('two codecs of one name are refused', () => {
    expect(() => new ValueSerializer({ codecs: [base64, base64] })).toThrow(TypeError);
  });

  test.each(['{"$codec":5,"data":""}', '{"$codec":"base64"}', '{"$codec"'])(
    'a malformed wrapper is unreadable: %s',
    (text) => {
      expect(() => new ValueSerializer({ codecs: [base64] }).decode(text)).toThrow(ValueDecodeError);
    },
  );
});
