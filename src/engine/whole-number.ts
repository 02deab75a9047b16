import { InvalidArgumentError } from '../errors/admin-errors.js';

/** @throws InvalidArgumentError when it is not a whole number within the bounds. */
export function wholeNumber(value: number, least: number, most: number, what: string): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new InvalidArgumentError(`${what} must be a whole number from ${String(least)} to ${String(most)}.`);
  }
  return value;
}
