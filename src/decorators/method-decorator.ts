import { RegistrationError } from '../errors/usage-errors.js';
import type { AnyFunction } from '../engine/definitions.js';

/**
 * A decorator for asynchronous methods, static or not, in both forms: TypeScript's `experimentalDecorators` and the standard
 * (TC39) ones. The method keeps its type.
 */
export interface AsyncMethodDecorator {
  /** The standard form. */
  <This, Arguments extends unknown[], Result>(
    method: (this: This, ...args: Arguments) => Promise<Result>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Arguments) => Promise<Result>>,
  ): (this: This, ...args: Arguments) => Promise<Result>;
  /** The form of `experimentalDecorators`. */
  <Arguments extends unknown[], Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Arguments) => Promise<Result>>,
  ): void;
}

/** Makes a decorator that replaces a method by what `wrap` makes of it. */
export function methodDecorator(
  decorator: string,
  name: string | undefined,
  wrap: (name: string, body: AnyFunction) => AnyFunction,
): AsyncMethodDecorator {
  const decorate = (target: unknown, keyOrContext: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (isStandardContext(keyOrContext)) {
      return wrap(name ?? nameOf(keyOrContext.name, decorator), methodOf(target, decorator));
    }
    if (descriptor === undefined) {
      throw new RegistrationError(`@${decorator} decorates asynchronous methods of classes, and nothing else.`);
    }
    descriptor.value = wrap(
      name ?? nameOf(keyOrContext as string | symbol, decorator),
      methodOf(descriptor.value, decorator),
    );
    return descriptor;
  };
  return decorate as AsyncMethodDecorator;
}

function isStandardContext(value: unknown): value is { readonly kind: string; readonly name: string | symbol } {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'method';
}

function methodOf(value: unknown, decorator: string): AnyFunction {
  if (typeof value !== 'function') {
    throw new RegistrationError(`@${decorator} decorates asynchronous methods of classes, and nothing else.`);
  }
  return value as AnyFunction;
}

/** The property key: unlike class and function names, minifiers leave it alone. */
function nameOf(key: string | symbol, decorator: string): string {
  if (typeof key === 'string' && !key.startsWith('#')) return key;
  throw new RegistrationError(`A method with a symbol or private name needs a name: @${decorator}({ name: '…' }).`);
}
