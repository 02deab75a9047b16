import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, test } from 'vitest';

import { decodeValue, encodeError, decodeError, encodeValue } from '../../src/values/index.js';
import { NOTABLE_KEYS } from './support/arbitraries.js';

const run = promisify(execFile);
const fixture = fileURLToPath(new URL('fixtures/round-trip-in-hardened-process.ts', import.meta.url));

/** An object with one own property, whatever it is called. */
function withKey(key: string, value: unknown): object {
  return Object.defineProperty({}, key, { value, writable: true, enumerable: true, configurable: true });
}

describe('C50: every property name is legal and inert', () => {
  test.each(NOTABLE_KEYS.map((key) => [JSON.stringify(key), key]))('%s, in a plain and in a rich value', (_, key) => {
    for (const content of ['plain', { nested: 'plain' }, new Date(5), withKey(key, 1n)]) {
      const back = decodeValue(encodeValue({ outer: withKey(key, content) })) as { outer: object };
      expect(Object.getPrototypeOf(back.outer)).toBe(Object.prototype);
      expect(Object.getOwnPropertyDescriptor(back.outer, key)).toMatchObject({ value: content, enumerable: true });
      const root = decodeValue(encodeValue(withKey(key, content))) as object;
      expect(Object.entries(root)).toStrictEqual([[key, content]]);
    }
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '$date'])(
    '%s, as the property of an error',
    (key) => {
      const error = Object.assign(new Error('x'), { kept: true });
      Object.defineProperty(error, key, { value: { polluted: true }, enumerable: true });
      const back = decodeError(encodeError(error)) as Error;
      expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
      expect(Object.getOwnPropertyDescriptor(back, key)?.value).toStrictEqual({ polluted: true });
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    },
  );

  test('no text pollutes a prototype', () => {
    for (const tag of ['"__proto__":{', '"constructor":{"prototype":{']) {
      const body = `${tag}"polluted":true${tag.endsWith('":{"prototype":{') ? '}' : ''}}`;
      decodeValue(`{${body}}`);
      decodeValue(`{"$holdfast":1,"value":{"a":{${body}},"at":{"$date":null}}}`);
      decodeValue(`{"$holdfast":1,"value":{"$nullproto":{${body}}}}`);
      decodeValue(
        `{"$holdfast":1,"value":{"$error":{"name":"__proto__","class":"__proto__","message":"","props":{${body}}}}}`,
      );
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test('an object without prototype comes back without one', () => {
    const value = Object.assign(Object.create(null) as Record<string, unknown>, { toString: 1, nested: { a: 1 } });
    const back = decodeValue(encodeValue(value)) as object;
    expect(Object.getPrototypeOf(back)).toBeNull();
    expect(Object.entries(back)).toStrictEqual([
      ['toString', 1],
      ['nested', { a: 1 }],
    ]);
  });

  test.each([
    ['without __proto__', ['--disable-proto=delete'], 'as-is'],
    ['where __proto__ throws', ['--disable-proto=throw'], 'as-is'],
    ['with frozen prototypes', [], 'freeze'],
    ['with frozen prototypes and without __proto__', ['--disable-proto=delete'], 'freeze'],
    ['with polluted prototypes', [], 'pollute'],
  ])('in a process %s', async (_, flags, mode) => {
    const { stdout } = await run(process.execPath, [...flags, '--import', 'tsx', fixture, mode]);
    expect(stdout.trim()).toBe('all came back');
  });
});
