import 'reflect-metadata';
import { RegistrationError } from '../errors/usage-errors.js';
import type { AnyFunction } from '../engine/definitions.js';

/**
 * A decorator for asynchronous methods, static or not, in both forms: TypeScript's `experimentalDecorators` and the standard
 * (TC39) ones. The method keeps its type, and takes at least `Input` as its first argument: what a schema makes of it.
 */
export interface AsyncMethodDecorator<Input = never> {
  /** The standard form. */
  <This, Arguments extends unknown[], Result>(
    method: ((this: This, ...args: Arguments) => Promise<Result>) &
      ((this: This, input: Input, ...more: never[]) => unknown),
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Arguments) => Promise<Result>>,
  ): (this: This, ...args: Arguments) => Promise<Result>;
  /** The form of `experimentalDecorators`. */
  <Method extends (input: Input, ...more: never[]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** Makes a decorator that replaces a method by what `wrap` makes of it. */
export function methodDecorator(
  decorator: string,
  name: string | undefined,
  wrap: (name: string, body: AnyFunction) => AnyFunction,
  /** Called with what the method is called on, as soon as all methods are there: the class, its prototype, or an object. */
  checkHolder?: (name: string, holder: object) => void,
): AsyncMethodDecorator {
  const decorate = (target: unknown, keyOrContext: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (isStandardContext(keyOrContext)) {
      const wrapped = wrap(name ?? nameOf(keyOrContext.name, decorator), methodOf(target, decorator));
      if (checkHolder !== undefined) {
        keyOrContext.addInitializer(function () {
          checkHolder(String(keyOrContext.name), this);
        });
      }
      return wrapped;
    }
    if (descriptor === undefined) {
      throw new RegistrationError(`@${decorator} decorates asynchronous methods of classes, and nothing else.`);
    }
    const key = keyOrContext as string | symbol;
    assertAsynchronous(target as object, key, decorator);
    const body = methodOf(descriptor.value, decorator);
    checkHolder?.(String(key), target as object);
    const wrapper = wrap(name ?? nameOf(key, decorator), body);
    // Other decorators (guards, interceptors) leave their metadata at the function, and look for it there.
    for (const metadataKey of Reflect.getOwnMetadataKeys(body) as unknown[]) {
      Reflect.defineMetadata(metadataKey, Reflect.getOwnMetadata(metadataKey, body), wrapper);
    }
    descriptor.value = wrapper;
    return descriptor;
  };
  return decorate as AsyncMethodDecorator;
}

/**
 * Without parentheses the method is taken for the options, or what it is a method of: a class, or its prototype. What the decorator
 * returns then does nothing.
 * @throws RegistrationError
 */
export function checkIsCalled(options: object, decorator: string): void {
  if (typeof options !== 'function' && !Object.hasOwn(options, 'constructor')) return;
  throw new RegistrationError(`Write @${decorator}(), with parentheses.`);
}

interface StandardContext {
  readonly kind: string;
  readonly name: string | symbol;
  addInitializer(initializer: (this: object) => void): void;
}

function isStandardContext(value: unknown): value is StandardContext {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'method';
}

/** With `emitDecoratorMetadata` the compiler says what a method returns: a plain JavaScript caller learns it here. */
function assertAsynchronous(target: object, key: string | symbol, decorator: string): void {
  const returned: unknown = Reflect.getMetadata('design:returntype', target, key);
  if (returned !== undefined && returned !== Promise && returned !== Object) {
    throw new RegistrationError(
      `@${decorator} on "${String(key)}": the method must be asynchronous and return a Promise.`,
    );
  }
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
