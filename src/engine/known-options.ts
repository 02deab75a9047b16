import { InvalidArgumentError } from '../errors/admin-errors.js';

/**
 * @throws InvalidArgumentError for an option that does not exist, since a misspelt one would silently do nothing; and for what
 *   is no object of options, such as an argument of the workflow in their place.
 */
export function checkKnownOptions(options: object, known: ReadonlySet<string>, what: string): void {
  checkIsOptions(options, what);
  for (const key of Object.keys(options)) {
    if (!known.has(key)) {
      throw new InvalidArgumentError(`${what} has no option "${key}". It has: ${[...known].join(', ')}.`);
    }
  }
}

/** @throws InvalidArgumentError for what is no object of options: callers without types leave them out. */
export function checkIsOptions(options: unknown, what: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(`${what} takes its options as an object, which may be empty: {}.`);
  }
}

/** @throws InvalidArgumentError for what cannot be called, which would be found out in the middle of a workflow, or never. */
export function checkIsFunction(value: unknown, what: string): void {
  if (typeof value !== 'function') throw new InvalidArgumentError(`${what} must be a function.`);
}
