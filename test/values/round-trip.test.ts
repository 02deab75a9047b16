import { runInNewContext } from 'node:vm';

import { describe, expect, test } from 'vitest';

import { decodeValue, encodeValue } from '../../src/values/index.js';
import fc from '../support/fast-check.js';
import { anyValue } from './support/arbitraries.js';
import { expectSameGraph } from './support/same-graph.js';

function roundTrip<T>(value: T): T {
  return decodeValue(encodeValue(value)) as T;
}

describe('C49: values come back as they were', () => {
  test('a value of any supported kind, nested in any other, comes back as the same graph', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expectSameGraph(roundTrip(value), value);
      }),
      { numRuns: 3_000 },
    );
  });

  test('encoding what was decoded gives the same text again', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = encodeValue(value);
        expect(encodeValue(decodeValue(text))).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  test('every text is JSON without a NUL character or a lone surrogate', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = encodeValue(value);
        expect(JSON.parse(text)).toBeDefined();
        expect(text).not.toContain('\0');
        expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });

  test('a JSON value is stored as what JSON.stringify makes of it, and nothing else', () => {
    // JSON has no negative zero, and the generator makes some: what is stored of it is another test's.
    const jsonValue = fc.jsonValue({ maxDepth: 5 }).map((value): unknown => JSON.parse(JSON.stringify(value)));
    fc.assert(
      fc.property(jsonValue, (value) => {
        const hasReservedKey = typeof value === 'object' && value !== null && '$holdfast' in value;
        fc.pre(!hasReservedKey);
        expect(encodeValue(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  test('a large list of small objects is stored as plain JSON', () => {
    const rows = Array.from({ length: 5_000 }, (_, index) => ({ index, tags: ['a'], nested: { ok: true } }));
    expect(encodeValue(rows)).toBe(JSON.stringify(rows));
  });

  test('an object referenced twice is one object afterwards, in small and in large values', () => {
    for (const size of [0, 100]) {
      const shared = { name: 'shared' };
      const filler = Array.from({ length: size }, (_, index) => ({ index }));
      const back = roundTrip({ first: shared, filler, second: shared });
      expect(back.second).toBe(back.first);
      expect(back.filler).toEqual(filler);
    }
  });

  test('a value that contains itself comes back containing itself', () => {
    interface Self {
      self?: Self;
      map?: Map<unknown, unknown>;
    }
    const value: Self = {};
    value.self = value;
    value.map = new Map<unknown, unknown>([[value, value]]);
    const back = roundTrip(value);
    expect(back.self).toBe(back);
    expect(back.map?.get(back)).toBe(back);
  });

  test('holes stay holes, also four thousand millions of them', () => {
    // eslint-disable-next-line no-sparse-arrays -- the subject of the test
    const back = roundTrip([, 1, , undefined, ,]);
    expect(Object.keys(back)).toEqual(['1', '3']);
    expect(back).toHaveLength(5);
    const sparse: number[] = [];
    sparse[4_000_000_000] = 1;
    expect(Object.keys(roundTrip(sparse))).toEqual(['4000000000']);
  });

  test('the named properties of a match come back', () => {
    const match = /(?<first>a)/.exec('xa');
    expectSameGraph(roundTrip(match), match);
  });

  test('a Buffer comes back as a Buffer, and a view holds only the bytes that it showed', () => {
    const secretPool = Buffer.from('secret-public-secret');
    const view = new Uint8Array(secretPool.buffer, secretPool.byteOffset + 7, 6);
    expect(roundTrip(Buffer.from('hello'))).toEqual(Buffer.from('hello'));
    expect(Buffer.isBuffer(roundTrip(Buffer.from('hello')))).toBe(true);
    expect(roundTrip(view)).toEqual(new Uint8Array(Buffer.from('public')));
    expect(roundTrip(view).buffer.byteLength).toBe(6);
  });

  test('objects of another realm come back as those of this one', () => {
    const foreign: unknown = runInNewContext(
      `({ list: [1, new Date(5)], map: new Map([[/a/g, new Set([1n])]]), bytes: new Uint8Array([1]), error: new TypeError('x') })`,
    );
    const back = roundTrip(foreign) as { list: unknown[]; map: Map<unknown, unknown>; bytes: unknown; error: unknown };
    expect(back.list).toStrictEqual([1, new Date(5)]);
    expect([...back.map]).toStrictEqual([[/a/g, new Set([1n])]]);
    expect(back.bytes).toStrictEqual(new Uint8Array([1]));
    expect(back.error).toBeInstanceOf(TypeError);
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
  });

  test('undefined is stored as a constant text', () => {
    expect(encodeValue(undefined)).toBe('{"$holdfast":1}');
    expect(decodeValue('{"$holdfast":1}')).toBeUndefined();
  });

  test('a toJSON method that is not enumerable or inherited has no say', () => {
    const value = Object.defineProperty({ kept: 1 }, 'toJSON', { value: () => 'replaced', enumerable: false });
    expect(encodeValue(value)).toBe('{"kept":1}');
  });

  test('symbol keys and properties that are not enumerable are left out, as structuredClone leaves them out', () => {
    const value = Object.defineProperty({ kept: 1, [Symbol('left out')]: 2 }, 'hidden', { value: 3 });
    expect(encodeValue(value)).toBe('{"kept":1}');
  });
});
