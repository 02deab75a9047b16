import { InvalidArgumentError } from '../errors/admin-errors.js';
import { RegistrationError } from '../errors/usage-errors.js';
import type { AnyFunction } from './any-function.js';

/** @throws InvalidArgumentError for an option that is neither a function nor the name of a method. */
export function checkMethodOption(value: unknown, option: string): string | AnyFunction {
  if (typeof value === 'function') return value as AnyFunction;
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidArgumentError(`The option "${option}" is a function, or the name of a method of the same class.`);
}

/**
 * The function that an option of a step stands for: itself, or the method of that name of what the step is called on.
 * @throws RegistrationError when there is no such method.
 */
export function stepMethod(source: string | AnyFunction, self: unknown, step: string, option: string): AnyFunction {
  if (typeof source === 'function') return source;
  const method = methodNamed(self, source);
  if (method !== undefined) return method;
  throw new RegistrationError(
    `Step "${step}" names "${source}" as its "${option}", which is no method of what it was called on. ` +
      'Call the step as a method of its class or object, or give the function itself.',
  );
}

function methodNamed(holder: unknown, name: string): AnyFunction | undefined {
  if ((typeof holder !== 'object' && typeof holder !== 'function') || holder === null) return undefined;
  const method = (holder as Readonly<Record<string, unknown>>)[name];
  return typeof method === 'function' ? (method as AnyFunction) : undefined;
}

/** @throws RegistrationError when a class has no method of a name that an option of one of its steps gives. */
export function checkStepMethod(source: unknown, holder: unknown, step: string, option: string): void {
  if (typeof source !== 'string' || methodNamed(holder, source) !== undefined) return;
  throw new RegistrationError(`Step "${step}" names "${source}" as its "${option}": its class has no such method.`);
}
