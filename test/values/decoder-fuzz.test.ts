import { describe, expect, test } from 'vitest';

import { ValueDecodeError } from '../../src/errors/value-errors.js';
import { decodeError, decodeValue, encodeError, encodeValue, ValueSerializer } from '../../src/values/index.js';
import fc from '../support/fast-check.js';
import { anyValue } from './support/arbitraries.js';

const decoders = [decodeValue, decodeError, (text: string): unknown => new ValueSerializer().decode(text)];

/** Gives a value or refuses with the one error that is meant for it. */
function expectValueOrRefusal(text: string): void {
  for (const decode of decoders) {
    try {
      decode(text);
    } catch (error) {
      if (!(error instanceof ValueDecodeError))
        throw new Error(`Decoding failed in another way: ${text}`, { cause: error });
    }
  }
}

const FRAGMENTS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '0',
  '-1',
  '1e99',
  'null',
  'true',
  '"$ref"',
  '"$holes"',
  '"$map"',
  '"__proto__"',
];
const TAGS = [
  'undefined',
  'number',
  'bigint',
  'date',
  'regexp',
  'url',
  'boxed',
  'map',
  'set',
  'bytes',
  'nullproto',
  'holes',
  'array',
  'error',
  'ref',
];

describe('C53: a decoder gives a value or ValueDecodeError, whatever the text', () => {
  test('random texts', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), expectValueOrRefusal), { numRuns: 2_000 });
  });

  test('valid texts in which something was cut out, doubled or replaced', () => {
    const mutation = fc.record({
      at: fc.nat(),
      length: fc.nat({ max: 12 }),
      insert: fc.constantFrom('', ...FRAGMENTS),
    });
    fc.assert(
      fc.property(anyValue, fc.array(mutation, { minLength: 1, maxLength: 4 }), (value, mutations) => {
        let text = encodeValue(value);
        for (const { at, length, insert } of mutations) {
          const start = at % (text.length + 1);
          text = text.slice(0, start) + insert + text.slice(start + length);
        }
        expectValueOrRefusal(text);
      }),
      { numRuns: 5_000 },
    );
  });

  test('envelopes with any tag around any JSON', () => {
    const content = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(...TAGS).chain((tag) => fc.jsonValue().map((value) => ({ [`$${tag}`]: value }))),
      fc.array(fc.array(fc.jsonValue(), { maxLength: 3 }), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom('name', 'message', 'stack', 'cause', 'errors', 'props', 'dropped', 'items'),
        fc.jsonValue(),
      ),
    );
    fc.assert(
      fc.property(fc.constantFrom(...TAGS), content, (tag, value) => {
        expectValueOrRefusal(JSON.stringify({ $holdfast: 1, value: { [`$${tag}`]: value } }));
      }),
      { numRuns: 5_000 },
    );
  });

  test('whatever a decoder gives for an error can be encoded again', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = encodeError(value);
        expect(encodeError(decodeError(text))).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });
});
