/**
 * Delays between the tries of a write that meets another version under its own token, in milliseconds. The numbers, and
 * that a conflict is not an error, are Ductor's ("Optimistic Locking").
 */
export const CONFLICT_DELAYS_MS: readonly number[] = [0, 10, 20, 40, 1_000];
