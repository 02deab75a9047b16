import { InvalidArgumentError } from '../errors/admin-errors.js';

/** @throws InvalidArgumentError unless it can be stored, compared and sent exactly as it is. */
export function checkText(value: unknown, longestBytes: number, what: string): string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > longestBytes) {
    throw new InvalidArgumentError(`${what} must be a text of 1 to ${String(longestBytes)} bytes.`);
  }
  if (!isStorable(value)) {
    throw new InvalidArgumentError(`${what} must not contain NUL or half of a surrogate pair.`);
  }
  return value;
}

/** Whether PostgreSQL can hold it: the one half of a surrogate pair would become another character on the way, and NUL be refused. */
export function isStorable(text: string): boolean {
  return !/\0|\p{Surrogate}/u.test(text);
}
