import { describe, expect, test } from 'vitest';

import { parseDuration } from '../../src/engine/duration.js';
import { InvalidArgumentError } from '../../src/errors/admin-errors.js';
import { InvalidCronError } from '../../src/errors/schedule-errors.js';
import { InvalidSchemaNameError } from '../../src/errors/schema-errors.js';
import { ValueDecodeError } from '../../src/errors/value-errors.js';
import { Ticks } from '../../src/fleet/ticks.js';
import { assertSchemaName } from '../../src/store/postgres/migrate-schema-name.js';
import { decodeError, decodeValue, encodeValue } from '../../src/values/index.js';
import fc from '../support/fast-check.js';
import { FUZZ_TIMEOUT_MS, fuzzRuns } from './runs.js';

const LONGEST_MS = 365_250 * 86_400_000;
/** Far more than any of these takes, and far less than what backtracking or a walk through centuries would. Milliseconds. */
const SOON_MS = 2_000;

/** Pieces of what is meant, put together as nobody means it, besides anything at all. */
const madeOf = (...pieces: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join('')),
    fc.string({ unit: 'binary', maxLength: 300 }),
  );

/** The result, or undefined when it is refused with the one error that is meant for it. */
function orRefusal<Result>(refusal: new (...args: never[]) => Error, work: () => Result): Result | undefined {
  const since = performance.now();
  try {
    return work();
  } catch (error) {
    if (!(error instanceof refusal)) throw error;
    return undefined;
  } finally {
    expect(performance.now() - since).toBeLessThan(SOON_MS);
  }
}

describe('durations', () => {
  test(
    'anything is whole milliseconds within bounds, or refused',
    () => {
      const durations = fc.oneof(
        madeOf('1', '0', '9'.repeat(30), '.', '-', '+', 'e', ' ', 'ms', 's', 'm', 'h', 'd', 'S', '\n', '٣', 'Infinity'),
        fc.double(),
        fc.anything(),
      );
      fc.assert(
        fc.property(durations, (value) => {
          const ms = orRefusal(InvalidArgumentError, () => parseDuration(value as number, 'it'));
          if (ms === undefined) return;
          expect(Number.isInteger(ms) && ms >= 0 && ms <= LONGEST_MS).toBe(true);
        }),
        fuzzRuns(3_000),
      );
    },
    FUZZ_TIMEOUT_MS,
  );
});

describe('cron expressions', () => {
  const field = fc.oneof(
    fc.constantFrom(
      '*',
      '*/5',
      '0',
      '59',
      '60',
      '-1',
      '1-5',
      '5-1',
      '1,2',
      'L',
      'W',
      '15W',
      '?',
      '#',
      'MON',
      'mon#2',
      'FEB',
      '*/0',
      '1/',
    ),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.integer({ min: -100, max: 1e12 }).map(String),
  );
  const expression = fc.oneof(
    fc.array(field, { minLength: 4, maxLength: 8 }).map((fields) => fields.join(' ')),
    madeOf('* ', '*', '/', '-', ',', '1', ' ', '@daily', 'L', '\n', 'T', 'Z', ':'),
    fc.anything() as fc.Arbitrary<string>,
  );
  const zone = fc.oneof(
    fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', '+01:00', '', 'Etc/GMT+5', 'no/where', '../etc'),
    fc.string({ maxLength: 20 }),
  );

  test(
    'anything ticks forward in whole seconds, or is refused',
    () => {
      fc.assert(
        fc.property(expression, zone, fc.integer({ min: 0, max: 4e12 }), (cron, timeZone, ms) => {
          const ticks = orRefusal(InvalidCronError, () => new Ticks(cron, timeZone));
          if (ticks === undefined) return;
          const following = orRefusal(InvalidCronError, () => ticks.following(ms, 3));
          for (const [index, tick] of (following ?? []).entries()) {
            expect(tick % 1_000).toBe(0);
            expect(tick).toBeGreaterThan(index === 0 ? ms : (following?.[index - 1] ?? ms));
          }
        }),
        fuzzRuns(500),
      );
    },
    FUZZ_TIMEOUT_MS,
  );
});

describe('names of schemas', () => {
  test(
    'what passes needs no quoting but that of keywords, and is within 48 characters; the rest is refused',
    () => {
      const names = madeOf(
        'a',
        '_',
        '"',
        ';',
        '.',
        ' ',
        '0',
        'A',
        'pg_',
        'information_schema',
        "'",
        '--',
        '\0',
        '\n',
        'ı',
        'é',
      );
      fc.assert(
        fc.property(names, (name) => {
          const passed = orRefusal(InvalidSchemaNameError, () => {
            assertSchemaName(name);
            return true;
          });
          if (passed === true) expect(name).toMatch(/^(?!pg_)[a-z_][a-z0-9_]{0,47}$/);
          if (passed === true) expect(name.endsWith('\n')).toBe(false);
        }),
        fuzzRuns(3_000),
      );
    },
    FUZZ_TIMEOUT_MS,
  );
});

describe('stored values', () => {
  const encodings = fc.anything({
    withMap: true,
    withSet: true,
    withDate: true,
    withBigInt: true,
    withTypedArray: true,
  });

  test(
    'mutated encodings leave every prototype as it is, and are decoded soon or refused',
    () => {
      const before = prototypes();
      const mutations = fc.array(
        fc.record({
          at: fc.nat(),
          length: fc.nat({ max: 6 }),
          by: fc.constantFrom('', '{', '"$ref"', '"__proto__"', '9', '[', '\\', '\ud800', '"constructor"'),
        }),
        { minLength: 1, maxLength: 6 },
      );
      fc.assert(
        fc.property(encodings, mutations, (value, changes) => {
          let text = encoded(value);
          for (const { at, length, by } of changes) {
            const place = at % (text.length + 1);
            text = text.slice(0, place) + by + text.slice(place + length);
          }
          orRefusal(ValueDecodeError, () => decodeValue(text));
          orRefusal(ValueDecodeError, () => decodeError(text));
          expect(prototypes()).toEqual(before);
        }),
        fuzzRuns(1_500),
      );
    },
    FUZZ_TIMEOUT_MS,
  );

  test.each([
    ['arrays', '[', ']'],
    ['objects', '{"a":', '}'],
    ['maps', '{"$map":[[1,', ']]}'],
    ['errors', '{"$error":{"name":"E","message":"m","cause":', '}}'],
  ])('%s that are nested 200,000 times are refused, or decoded, and never end the process', (_, open, close) => {
    for (const depth of [1_000, 200_000]) {
      const text = `{"$holdfast":1,"value":${open.repeat(depth)}0${close.repeat(depth)}}`;
      try {
        decodeValue(text);
      } catch (error) {
        expect(error).toBeInstanceOf(ValueDecodeError);
      }
    }
  });

  test('what is small stays small: a text does not make arrays or buffers of billions', () => {
    const sizes = fc.constantFrom('4294967295', '1e9', '9007199254740991', '-1', '1e308');
    const forms = fc.constantFrom(
      (n: string) => `{"$array":{"length":${n}}}`,
      (n: string) => `{"$holes":[${n}]}`,
      (n: string) => `{"$holes":{"length":${n},"items":[]}}`,
      (n: string) => `{"$bytes":{"kind":"Uint8Array","length":${n},"data":""}}`,
      (n: string) => `{"$ref":${n}}`,
    );
    fc.assert(
      fc.property(sizes, forms, (size, form) => {
        const before = process.memoryUsage().arrayBuffers;
        const found = orRefusal(ValueDecodeError, () => decodeValue(`{"$holdfast":1,"value":${form(size)}}`));
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1_024 * 1_024);
        return found === undefined || true;
      }),
      fuzzRuns(100),
    );
  });
});

function encoded(value: unknown): string {
  try {
    return encodeValue(value);
  } catch {
    return '{"$holdfast":1,"value":{"$map":[[1,{"$date":0}]]}}';
  }
}

/** What is inherited by everything. */
function prototypes(): readonly unknown[] {
  return [Object, Array, Map, Set, Error, Date, Function, Promise].map(({ prototype }) =>
    Object.getOwnPropertyNames(prototype).join(),
  );
}
