import { InvalidArgumentError } from '../errors/admin-errors.js';

/** @throws InvalidArgumentError for an option that does not exist: a misspelt one would silently do nothing. */
export function checkKnownOptions(options: object, known: ReadonlySet<string>, what: string): void {
  for (const key of Object.keys(options)) {
    if (!known.has(key)) {
      throw new InvalidArgumentError(`${what} has no option "${key}". It has: ${[...known].join(', ')}.`);
    }
  }
}
