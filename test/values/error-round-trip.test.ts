import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { DatabaseError } from '../../src/errors/database-errors.js';
import { HoldfastError } from '../../src/errors/holdfast-error.js';
import { decodeError, decodeValue, encodeError, encodeValue, ErrorRegistry } from '../../src/values/index.js';

class PaymentDeclinedError extends Error {
  override readonly name = 'PaymentDeclinedError';
  readonly reason: string;

  constructor(details: { readonly reason: string }, options?: ErrorOptions) {
    // Would throw if it were ever called with something else.
    super(`Declined: ${details.reason.toUpperCase()}`, options);
    this.reason = details.reason;
  }
}

/** Its name is the inherited `Error`. */
class UnnamedError extends Error {}

function stored(error: unknown, registry?: ErrorRegistry): Error {
  const text = encodeError(error);
  const back = decodeError(text, registry);
  expect(encodeError(back)).toBe(text);
  expect(encodeError(decodeError(text))).toBe(text);
  expect(back).toBeInstanceOf(Error);
  return back as Error;
}

function caught(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error('Nothing was thrown.');
}

describe('C30: an error comes back usable', () => {
  test.each([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError])(
    '%o comes back as that class with message, stack and cause',
    (ErrorClass) => {
      const error = new ErrorClass('what happened', { cause: { code: 7n } });
      const back = stored(error);
      expect(Object.getPrototypeOf(back)).toBe(ErrorClass.prototype);
      expect(back.message).toBe('what happened');
      expect(back.stack).toBe(error.stack);
      expect(back.cause).toEqual({ code: 7n });
      expect(back.name).toBe(ErrorClass.name);
      expect(Object.keys(back)).toEqual([]);
    },
  );

  test('a chain of causes comes back link by link', () => {
    const back = stored(new Error('a', { cause: new TypeError('b', { cause: new RangeError('c', { cause: 'd' }) }) }));
    expect(back.cause).toBeInstanceOf(TypeError);
    expect((back.cause as Error).cause).toBeInstanceOf(RangeError);
    expect(((back.cause as Error).cause as Error).cause).toBe('d');
  });

  test('a cause of undefined is a cause, and no cause is none', () => {
    expect(Object.hasOwn(stored(new Error('x', { cause: undefined })), 'cause')).toBe(true);
    expect(Object.hasOwn(stored(new Error('x')), 'cause')).toBe(false);
  });

  test('an AggregateError comes back with its errors', () => {
    const shared = new TypeError('one');
    const error = new AggregateError([shared, 'two', undefined, () => 3, shared], 'several');
    const back = stored(error) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.errors).toHaveLength(5);
    expect(back.errors[0]).toBeInstanceOf(TypeError);
    expect(back.errors[1]).toBe('two');
    expect(back.errors[2]).toBeUndefined();
    expect((back.errors[3] as Error).message).toMatch(/a function/);
    expect(back.errors[4]).toBe(back.errors[0]);
  });

  test('the errors of Promise.any and of AbortSignal come back', async () => {
    const any = await Promise.any([Promise.reject(new Error('x'))]).catch((error: unknown) => error);
    expect(stored(any)).toBeInstanceOf(AggregateError);
    const abort = stored(AbortSignal.abort().reason);
    expect(abort).toBeInstanceOf(DOMException);
    expect(abort).toMatchObject({ name: 'AbortError', code: 20 });
    expect(stored(new DOMException('late', 'TimeoutError'))).toMatchObject({ name: 'TimeoutError', message: 'late' });
  });

  test("Node's own errors come back with their properties", () => {
    const missing = caught(() => readFileSync('/does/not/exist'));
    expect(stored(missing)).toMatchObject({ code: 'ENOENT', syscall: 'open', errno: expect.any(Number) as number });
    const invalid = caught(() => Buffer.alloc(-1));
    expect(stored(invalid)).toBeInstanceOf(RangeError);
    expect(stored(invalid)).toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  });

  test('a registered class comes back as an instance of it, and its constructor does not run', () => {
    const error = new PaymentDeclinedError({ reason: 'no funds' }, { cause: new Error('bank') });
    const back = stored(error, new ErrorRegistry([PaymentDeclinedError]));
    expect(back).toBeInstanceOf(PaymentDeclinedError);
    expect(back).toMatchObject({ name: 'PaymentDeclinedError', message: 'Declined: NO FUNDS', reason: 'no funds' });
    expect(back.stack).toBe(error.stack);
    expect(back.cause).toBeInstanceOf(Error);
  });

  test("Holdfast's own errors come back as instances with their code", () => {
    const error = new DatabaseError('no', { sqlState: '40001' }, { cause: new Error('driver') });
    const back = stored(error, new ErrorRegistry(Object.entries({ DatabaseError })));
    expect(back).toBeInstanceOf(DatabaseError);
    expect(back).toBeInstanceOf(HoldfastError);
    expect(back).toMatchObject({ code: 'DATABASE_ERROR', sqlState: '40001', constraint: undefined });
  });

  test('a class that is not registered comes back as Error with its name and properties', () => {
    const back = stored(new PaymentDeclinedError({ reason: 'no funds' }));
    expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
    expect(back).toMatchObject({ name: 'PaymentDeclinedError', reason: 'no funds' });
  });

  test('a class without a name of its own comes back under the name of the class', () => {
    expect(stored(new UnnamedError('x'))).toMatchObject({ name: 'UnnamedError' });
    const known = stored(new UnnamedError('x'), new ErrorRegistry([UnnamedError]));
    expect(known).toBeInstanceOf(UnnamedError);
    expect(known.name).toBe('Error');
  });

  test('a process that knows the class rebuilds what a process that does not know it passed on', () => {
    const passedOn = encodeError(decodeError(encodeError(new UnnamedError('x'))));
    expect(decodeError(passedOn, new ErrorRegistry([UnnamedError]))).toBeInstanceOf(UnnamedError);
  });

  test('a class is found by name where a bundler renamed it', () => {
    const Renamed = {
      a: class extends Error {
        override readonly name = 'OutOfStockError';
      },
    }.a;
    const registry = new ErrorRegistry([['OutOfStockError', Renamed]]);
    expect(stored(new Renamed('x'), registry)).toBeInstanceOf(Renamed);
  });

  test('errors inside values come back too', () => {
    const registry = new ErrorRegistry([PaymentDeclinedError]);
    const settled = [{ status: 'rejected', reason: new PaymentDeclinedError({ reason: 'no' }) }];
    const [back] = decodeValue(encodeValue(settled), registry) as typeof settled;
    expect(back?.reason).toBeInstanceOf(PaymentDeclinedError);
  });

  test('a rebuilt error is an error to the platform', () => {
    const back = stored(new PaymentDeclinedError({ reason: 'x' }), new ErrorRegistry([PaymentDeclinedError]));
    expect(Object.prototype.toString.call(back)).toBe('[object Error]');
    expect(structuredClone(back).message).toBe(back.message);
  });

  test('rebuilding leaves the length of other stacks alone', () => {
    const before = Error.stackTraceLimit;
    stored(new Error('x'));
    expect(Error.stackTraceLimit).toBe(before);
  });

  test('a registry refuses what is no class of errors, and two classes of one name', () => {
    const other = class PaymentDeclinedError extends Error {};
    expect(() => new ErrorRegistry([Map as never])).toThrow(TypeError);
    expect(() => new ErrorRegistry([PaymentDeclinedError, other])).toThrow(/Two error classes/);
    expect(() => new ErrorRegistry([PaymentDeclinedError, PaymentDeclinedError])).not.toThrow();
  });
});
