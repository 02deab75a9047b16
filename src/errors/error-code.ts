import { HoldfastError } from './holdfast-error.js';

/** What a log says of an error: its stable code. Messages may hold what users store. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof HoldfastError ? error.code : undefined;
}
