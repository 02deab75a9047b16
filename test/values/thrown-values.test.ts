import { describe, expect, test } from 'vitest';

import { decodeError, droppedPropertiesOf, encodeError } from '../../src/values/index.js';
import fc from '../support/fast-check.js';

/** What the stored form gives back; also checks that encoding it again changes nothing. */
function stored(thrown: unknown): unknown {
  const text = encodeError(thrown);
  const back = decodeError(text);
  expect(encodeError(back)).toBe(text);
  return back;
}

/** Throws itself, whatever is done to it. Kept behind functions: the test runner would stumble over it, too. */
const hostile = (): object => hostileObject;
const hostileHandler: ProxyHandler<object> = new Proxy({}, { get: () => throwing(hostile) });
const hostileObject: object = new Proxy({}, hostileHandler);

function throwing(thrown: () => unknown): () => never {
  return () => {
    throw thrown();
  };
}

/** An error whose every usual property is a getter that throws. */
function errorOfThrowingGetters(thrown: () => unknown): Error {
  const error = new Error('unreadable');
  // The stack first: V8 reads name and message to make one as soon as it is touched.
  for (const key of ['stack', 'name', 'message', 'cause', 'constructor', 'code', 'errors']) {
    Object.defineProperty(error, key, { get: throwing(thrown), enumerable: true, configurable: true });
  }
  return error;
}

class HttpFailure {
  readonly message = 'status 500';
}

describe('C29: whatever is thrown, there is a text for it', () => {
  test.each<[what: string, thrown: unknown]>([
    ['a string', 'out of stock'],
    ['an empty string', ''],
    ['undefined', undefined],
    ['null', null],
    ['a number', 404],
    ['NaN', Number.NaN],
    ['a bigint', 10n],
    ['a frozen object', Object.freeze({ code: 'E_FROZEN' })],
    ['a list', [1, undefined]],
    ['an object without prototype', Object.assign(Object.create(null) as object, { code: 1 })],
  ])('%s that was thrown comes back as itself', (_, thrown) => {
    expect(stored(thrown)).toStrictEqual(thrown);
  });

  test.each<[what: string, thrown: () => unknown, message: RegExp]>([
    ['a function', () => () => 1, /a function/],
    ['a symbol', () => Symbol('secret'), /a symbol/],
    ['a promise', () => Promise.resolve(), /a promise/],
    ['an instance of a class that is not an error', () => new HttpFailure(), /class HttpFailure.*: status 500/],
    ['an object that holds a function', () => ({ message: 'failed', retry: () => 1 }), /an object: failed/],
    ['a string past the limit', () => 'x'.repeat(2_000_000), /type string/],
    ['a proxy that throws on everything', hostile, /could not be read/],
    [
      'a proxy of an error that throws on everything',
      () => new Proxy(new Error(), hostileHandler),
      /could not be read/,
    ],
  ])('%s that was thrown comes back as an error that describes it', (_, thrown, message) => {
    const back = stored(thrown());
    expect(back).toBeInstanceOf(Error);
    expect((back as Error).message).toMatch(message);
  });

  test.each<[what: string, thrown: () => unknown]>([
    ['an error', () => new Error('x')],
    ['undefined', () => undefined],
    ['a proxy that throws on everything', hostile],
  ])('an error whose getters throw %s comes back as an error', (_, thrown) => {
    expect(stored(errorOfThrowingGetters(thrown))).toBeInstanceOf(Error);
    expect(stored(new Error('outer', { cause: errorOfThrowingGetters(thrown) }))).toMatchObject({ message: 'outer' });
  });

  test('an error whose message, name and stack are no text comes back as an error', () => {
    for (const value of [undefined, null, 5, {}, Symbol(), () => 1, hostile()]) {
      const error = Object.defineProperties(new Error(), {
        stack: { value },
        name: { value },
        message: { value },
      });
      expect(stored(error)).toBeInstanceOf(Error);
    }
  });

  test('a frozen error comes back', () => {
    expect(stored(Object.freeze(new Error('frozen')))).toMatchObject({ message: 'frozen' });
  });

  test('an error that is its own cause comes back as its own cause', () => {
    const error = new Error('circular');
    error.cause = error;
    const back = stored(error) as Error;
    expect(back.cause).toBe(back);
  });

  test('own properties that cannot be stored are left out one by one, and listed', () => {
    const error = Object.assign(new Error('x'), {
      code: 'E_KEPT',
      request: () => 1,
      socket: hostile(),
      body: 'x'.repeat(100_000),
      details: { kept: new Date(5) },
    });
    const back = stored(error) as Error;
    expect(back).toMatchObject({ message: 'x', code: 'E_KEPT', details: { kept: new Date(5) } });
    expect(Object.keys(back)).toEqual(['code', 'details']);
    expect(droppedPropertiesOf(back)).toEqual(['request', 'socket', 'body']);
    expect(droppedPropertiesOf(new Error())).toEqual([]);
  });

  test('what a left-out property refers to can still be referred to by others', () => {
    const shared = { id: 1 };
    const error = Object.assign(new Error('x'), { broken: [shared, () => 1], first: shared, second: shared });
    const back = stored(error) as Error & { first: unknown; second: unknown };
    expect(back.first).toEqual({ id: 1 });
    expect(back.second).toBe(back.first);
  });

  test('a chain of causes without end is cut where it gets too deep', () => {
    let error = new Error('innermost');
    for (let level = 0; level < 5_000; level++) error = new Error(`level ${level}`, { cause: error });
    let depth = 0;
    let cause = stored(error);
    while (cause instanceof Error && cause.cause !== undefined) {
      depth++;
      cause = cause.cause;
    }
    expect(depth).toBeGreaterThan(20);
    expect(droppedPropertiesOf(cause as Error)).toEqual(['cause']);
  });

  test('causes that are made up while they are read end too', () => {
    class Endless extends Error {
      constructor() {
        super('endless');
        Object.defineProperty(this, 'cause', { get: () => new Endless() });
      }
    }
    expect(stored(new Endless())).toMatchObject({ message: 'endless' });
  });

  test('a huge message and a huge stack are cut, and say so', () => {
    const error = new Error('m'.repeat(5_000_000));
    const text = encodeError(error);
    expect(text.length).toBeLessThan(200_000);
    expect((stored(error) as Error).message).toMatch(/^m+ … \[cut by Holdfast: 5000000 characters\]$/);
    expect((stored(error) as Error).stack).toMatch(/cut by Holdfast/);
  });

  test('an error that is too large as a whole keeps name, code, message and stack', () => {
    class TooMuchError extends AggregateError {
      override readonly name = 'TooMuchError';
      readonly code = 'E_MUCH';
    }
    const errors = Array.from({ length: 2_000 }, () => new Error('x'.repeat(1_000)));
    const error = new TooMuchError(errors, 'too much');
    const back = stored(error) as Error;
    expect(encodeError(error).length).toBeLessThan(20_000);
    expect(back).toMatchObject({ name: 'TooMuchError', message: 'too much', code: 'E_MUCH' });
    expect(back.stack).toMatch(/too much/);
    expect(droppedPropertiesOf(back)).toEqual(['errors']);
  });

  test('a code that is too long, or no text, is left out of an error that is too large as a whole', () => {
    for (const code of ['x'.repeat(10_000), { deep: 1 }]) {
      const back = decodeError(encodeError(Object.assign(new Error('m'), { code }), { maxBytes: 10 })) as Error;
      expect(droppedPropertiesOf(back)).toEqual(['code']);
    }
  });

  test('an error finds its place under any limit', () => {
    const error = Object.assign(new Error('short'), { large: 'x'.repeat(1_000) });
    expect(decodeError(encodeError(error, { maxBytes: 10 }))).toMatchObject({ message: 'short' });
    expect(decodeError(encodeError('x'.repeat(100), { maxBytes: 10 }))).toBeInstanceOf(Error);
  });

  test('anything that fast-check can think of', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withSparseArray: true,
          withTypedArray: true,
          withNullPrototype: true,
          withObjectString: true,
          withBoxedValues: true,
        }),
        (thrown) => {
          stored(thrown);
          stored(new Error('outer', { cause: thrown }));
          stored(Object.assign(new AggregateError([thrown]), { thrown }));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test('C72: the text of an error holds nothing but the error', () => {
    process.env['HOLDFAST_TEST_SECRET'] = 'hunter2';
    const call = (_secret: string): Error => new Error('x');
    expect(encodeError(call('hunter2'))).not.toContain('hunter2');
    delete process.env['HOLDFAST_TEST_SECRET'];
    expect(
      Object.keys((JSON.parse(encodeError(new Error('x'))) as { value: { $error: object } }).value.$error),
    ).toEqual(['name', 'message', 'stack']);
  });
});
