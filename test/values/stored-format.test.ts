import { describe, expect, test } from 'vitest';

import { ValueDecodeError } from '../../src/errors/value-errors.js';
import { decodeValue, encodeValue } from '../../src/values/index.js';

/** Texts as version 1 wrote them. They are in databases: an entry may be added, none may be changed. */
const VERSION_1: readonly (readonly [text: string, value: unknown])[] = [
  ['{"$holdfast":1}', undefined],
  ['"plain"', 'plain'],
  ['{"id":"a","$date":"not a tag here"}', { id: 'a', $date: 'not a tag here' }],
  ['{"$holdfast":1,"value":{"$number":"NaN"}}', Number.NaN],
  ['{"$holdfast":1,"value":{"$number":"-0"}}', -0],
  ['{"$holdfast":1,"value":{"$bigint":"-12"}}', -12n],
  ['{"$holdfast":1,"value":{"at":{"$date":"2026-01-02T03:04:05.000Z"}}}', { at: new Date('2026-01-02T03:04:05Z') }],
  ['{"$holdfast":1,"value":{"$date":null}}', new Date(Number.NaN)],
  ['{"$holdfast":1,"value":{"$regexp":["a+","gi"]}}', /a+/gi],
  ['{"$holdfast":1,"value":{"$url":"https://example.com/?q=1"}}', new URL('https://example.com/?q=1')],
  [
    '{"$holdfast":1,"value":{"$map":[["k",{"$set":[1,{"$undefined":true}]}]]}}',
    new Map([['k', new Set([1, undefined])]]),
  ],
  ['{"$holdfast":1,"value":{"$bytes":["Float32Array","AACAPw=="]}}', new Float32Array([1])],
  ['{"$holdfast":1,"value":{"$bytes":["Buffer","aGk="]}}', Buffer.from('hi')],
  ['{"$holdfast":1,"value":{"$boxed":"text"}}', Object('text')],
  ['{"$holdfast":1,"value":{"$$holdfast":1,"$$$":2}}', { $holdfast: 1, $$: 2 }],
  // eslint-disable-next-line no-sparse-arrays -- the subject of the entry
  ['{"$holdfast":1,"value":[{"$holes":2},1]}', [, , 1]],
  ['{"$holdfast":1,"value":{"$array":{"items":["a"],"props":{"index":0}}}}', Object.assign(['a'], { index: 0 })],
  ['{"$holdfast":1,"value":{"$nullproto":{"a":1}}}', Object.assign(Object.create(null) as object, { a: 1 })],
];

describe('C53: texts that are in databases stay readable', () => {
  test.each(VERSION_1)('version 1 of the format: %s', (text, value) => {
    expect(decodeValue(text)).toStrictEqual(value);
    expect(encodeValue(value)).toBe(text);
  });

  test('version 1 of the format: shared and circular references', () => {
    const back = decodeValue('{"$holdfast":1,"value":{"a":{"b":{"$ref":0}},"c":{"$ref":1}}}') as Record<
      string,
      unknown
    >;
    expect(back['a']).toStrictEqual({ b: back });
    expect(back['c']).toBe(back['a']);
  });

  test('version 1 of the format: an error', () => {
    const text =
      '{"$holdfast":1,"value":{"$error":{"name":"TypeError","message":"no","stack":"TypeError: no\\n    at x",' +
      '"cause":"why","props":{"code":"E_NO"},"dropped":["socket"]}}}';
    const back = decodeValue(text);
    expect(back).toBeInstanceOf(TypeError);
    expect(back).toMatchObject({ message: 'no', stack: 'TypeError: no\n    at x', cause: 'why', code: 'E_NO' });
    expect(encodeValue(back)).toBe(text);
  });

  test('white space and the order of keys do not matter, since other languages write texts too', () => {
    expect(decodeValue('{ "value": { "$bigint": "1" }, "$holdfast": 1 }')).toBe(1n);
  });

  test('a newer version is refused with what to do about it', () => {
    const decode = (): unknown => decodeValue('{"$holdfast":2,"value":1}');
    expect(decode).toThrow(ValueDecodeError);
    expect(decode).toThrow(/version 2 .* Upgrade/);
  });

  test.each([
    '',
    'undefined',
    '{"a":',
    '{"$holdfast":"1","value":1}',
    '{"$holdfast":1,"value":1,"extra":1}',
    '{"$holdfast":1,"value":{"$unknown":1}}',
    '{"$holdfast":1,"value":{"$date":"x","other":1}}',
    '{"$holdfast":1,"value":{"$ref":0}}',
    '{"$holdfast":1,"value":{"$ref":-1}}',
    '{"$holdfast":1,"value":{"$bigint":"x"}}',
    '{"$holdfast":1,"value":{"$regexp":["(",""]}}',
    '{"$holdfast":1,"value":{"$url":"nowhere"}}',
    '{"$holdfast":1,"value":{"$map":[[1]]}}',
    '{"$holdfast":1,"value":{"a":{"$holes":1}}}',
    '{"$holdfast":1,"value":[{"$holes":4294967295},{"$holes":1}]}',
    '{"$holdfast":1,"value":{"$bytes":["Float64Array","AA=="]}}',
    '{"$holdfast":1,"value":{"$bytes":["Function","AA=="]}}',
    '{"$holdfast":1,"value":{"$boxed":{"a":1}}}',
    '{"$holdfast":1,"value":{"$error":{"name":"Error"}}}',
    `{"$holdfast":1,"value":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
  ])('a malformed text is refused with ValueDecodeError: %s', (text) => {
    expect(() => decodeValue(text)).toThrow(ValueDecodeError);
  });

  test('C72: the error for a malformed text quotes nothing of it', () => {
    const texts = ['{"password":"hunter2"', '{"$holdfast":1,"value":{"$bigint":"hunter2"}}'];
    for (const text of texts) {
      try {
        decodeValue(text);
        expect.unreachable();
      } catch (error) {
        expect(String(error)).not.toContain('hunter2');
        expect((error as Error).stack).not.toContain('hunter2');
        expect((error as Error).cause).toBeUndefined();
      }
    }
  });
});
