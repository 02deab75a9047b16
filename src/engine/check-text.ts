import { InvalidArgumentError } from '../errors/admin-errors.js';

/** @throws InvalidArgumentError unless it can be stored, compared and sent exactly as it is. */
export function checkText(value: unknown, longestBytes: number, what: string): string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > longestBytes) {
    throw new InvalidArgumentError(`${what} must be a text of 1 to ${String(longestBytes)} bytes.`);
  }
  if (/\0|\p{Surrogate}/u.test(value)) {
    throw new InvalidArgumentError(`${what} must not contain NUL or half of a surrogate pair.`);
  }
  return value;
}
