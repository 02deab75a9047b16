import { Readable } from 'node:stream';

import { describe, expect, test } from 'vitest';

import { PayloadTooLargeError, ValueNotSerializableError } from '../../src/errors/value-errors.js';
import { encodeValue, MAX_DEPTH } from '../../src/values/index.js';

class Account {
  readonly secret = 'hunter2';
}

class Numbers extends Array<number> {}

function refusalOf(value: unknown): ValueNotSerializableError {
  try {
    encodeValue(value);
  } catch (error) {
    if (error instanceof ValueNotSerializableError) return error;
    throw error;
  }
  throw new Error('The value was not refused.');
}

function throwing(thrown: () => unknown): () => never {
  return () => {
    throw thrown();
  };
}

describe('C51: what could not be given back is refused with its path', () => {
  test.each<[what: string, value: unknown, words: RegExp]>([
    ['a function', () => 1, /a function/],
    ['a class', Account, /a function/],
    ['a symbol', Symbol('x'), /a symbol/],
    ['a promise', Promise.resolve(1), /promise \(await it first\)/],
    [
      'a thenable of a class',
      new (class Query {
        readonly then = () => 1;
      })(),
      /thenable of class Query/,
    ],
    ['a stream', Readable.from(['a']), /stream of class Readable/],
    ['a web stream', new ReadableStream(), /stream of class ReadableStream/],
    ['a WeakMap', new WeakMap(), /a WeakMap/],
    ['a WeakRef', new WeakRef({}), /class WeakRef/],
    ['a SharedArrayBuffer', new SharedArrayBuffer(1), /SharedArrayBuffer/],
    ['an instance of a class', new Account(), /class Account \(convert it to a plain object first\)/],
    ['an instance of a subclass of Array', new Numbers(), /class Numbers, a subclass of Array/],
    ['an instance of a subclass of Map', new (class Cache extends Map {})(), /class Cache/],
    ['an instance of a subclass of Date', new (class Day extends Date {})(), /class Day/],
    ['an instance of a subclass of Uint8Array', new (class Bytes extends Uint8Array {})(), /class Bytes/],
    ['an object that inherits from another', Object.create({ inherited: 1 }) as object, /an object/],
    [
      'a generator',
      (function* () {
        yield 1;
      })(),
      /./,
    ],
    ['a proxy of a Map', new Proxy(new Map(), {}), /class Map/],
    ['URLSearchParams', new URLSearchParams('a=1'), /class URLSearchParams/],
  ])('%s', (_, value, words) => {
    expect(refusalOf(value)).toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE', path: '$' });
    expect(refusalOf({ items: [1, 2, 3, { callback: value }] }).path).toBe('$.items[3].callback');
    expect(refusalOf({ items: [value] }).message).toMatch(words);
  });

  test.each<[path: string, value: unknown]>([
    ['$["a key"][""]["\\"quoted\\""]', { 'a key': { '': { '"quoted"': Symbol() } } }],
    [
      '$.cache{value 1}.on',
      new Map([
        ['a', {}],
        ['b', { on: () => 1 }],
      ]),
    ],
    ['$.cache{key 0}[0]', new Map([[[Symbol()], 1]])],
    ['$.cache{value 2}', new Set([1, 2, Symbol()])],
    ['$.cache["then"]'.replace('["then"]', '.then'), { then: () => 1 }],
    ['$.cache.toJSON', { toJSON: () => 1 }],
    [
      '$.cache.__proto__',
      JSON.parse('{"__proto__":0}', (key, value: unknown) => (key === '__proto__' ? Symbol() : value)),
    ],
  ])('the path %s', (path, value) => {
    const wrapped = path.startsWith('$.cache') ? { cache: value } : value;
    expect(refusalOf(wrapped).path).toBe(path);
  });

  test('a getter that throws is refused with its path and its error as the cause', () => {
    for (const thrown of [new Error('not now'), undefined, 'text'] as unknown[]) {
      const value = { a: [Object.defineProperty({}, 'b', { get: throwing(() => thrown), enumerable: true })] };
      expect(refusalOf(value)).toMatchObject({ path: '$.a[0].b', cause: thrown });
    }
  });

  test('proxies that throw on everything are refused, not a crash', () => {
    const hostile: object = new Proxy({}, new Proxy({}, { get: () => throwing(() => hostile) }));
    expect(refusalOf({ a: hostile }).path).toBe('$.a');
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusalOf({ a: proxy }).path).toBe('$.a');
  });

  test('an instance that only claims to be a supported class is refused', () => {
    expect(refusalOf(Object.create(URL.prototype)).path).toBe('$');
    expect(refusalOf(Object.create(Date.prototype)).path).toBe('$');
    expect(refusalOf(Object.create(Map.prototype)).path).toBe('$');
  });

  test('a detached buffer is refused', () => {
    const bytes = new Uint8Array(8);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    expect(refusalOf({ bytes }).path).toBe('$.bytes');
  });

  test('nesting is accepted to the limit and refused beyond it', () => {
    const nested = (levels: number): unknown => {
      let value: unknown = 'end';
      for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value };
      return value;
    };
    expect(encodeValue(nested(MAX_DEPTH))).toBe(JSON.stringify(nested(MAX_DEPTH)));
    for (const levels of [MAX_DEPTH + 1, 100_000]) {
      expect(refusalOf(nested(levels)).message).toMatch(new RegExp(`more than ${MAX_DEPTH} levels`));
      expect(refusalOf(nested(levels)).path.length).toBeLessThan(500);
    }
  });

  test('C72: a refusal tells the place and the class, never what is in the value', () => {
    const refusal = refusalOf({ password: 'hunter2', account: new Account() });
    expect(refusal.path).toBe('$.account');
    expect(JSON.stringify([refusal.message, refusal])).not.toContain('hunter2');
  });
});

describe('C52: a value past the limit is refused with its size', () => {
  const limits = { maxBytes: 100 };

  test.each<[what: string, value: unknown]>([
    ['a string', 'x'.repeat(99)],
    ['a string of characters that take three bytes', '€'.repeat(33)],
    ['a string that escaping makes longer', '\0'.repeat(20)],
    ['a plain object', { a: 'x'.repeat(60), b: 'x'.repeat(60) }],
    ['a list', Array.from({ length: 60 }, () => 1)],
    ['a rich value', { at: new Date(), text: 'x'.repeat(70) }],
    ['a buffer', new ArrayBuffer(80)],
    ['a bigint', 10n ** 100n],
    ['a property name', { ['k'.repeat(100)]: 1n }],
  ])('%s', (_, value) => {
    try {
      encodeValue(value, limits);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(PayloadTooLargeError);
      expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', limitBytes: 100 });
      expect((error as PayloadTooLargeError).actualBytes).toBeGreaterThan(100);
    }
  });

  test('a value of exactly the limit is accepted, in bytes of UTF-8', () => {
    expect(encodeValue('x'.repeat(98), limits)).toHaveLength(100);
    expect(Buffer.byteLength(encodeValue('€'.repeat(32) + 'xx', limits))).toBe(100);
    expect(() => encodeValue('€'.repeat(32) + 'xxx', limits)).toThrow(PayloadTooLargeError);
  });

  test('the default limit is 16 MiB, and the size of a plain value is exact', () => {
    const value = 'x'.repeat(20 * 1024 * 1024);
    expect(() => encodeValue({ value })).toThrow(
      expect.objectContaining({ actualBytes: value.length + 12, limitBytes: 16 * 1024 * 1024 }),
    );
  });

  test('a value that shares one object exponentially often is small, not a bomb', () => {
    let value: unknown[] = ['seed'];
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(encodeValue(value).length).toBeLessThan(2_000);
  });
});
