/**
 * What users' code has thrown, if one can look at it; else an error that says so. Even `instanceof` throws for a proxy that has been
 * revoked, in the middle of deciding what the throw means.
 */
export function whatWasThrown(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown : thrown;
  } catch (cause) {
    return new Error('Something was thrown that cannot be looked at.', { cause });
  }
}

/** @returns An error whatever was thrown: not everything has a text either. */
export function asError(thrown: unknown): Error {
  const seen = whatWasThrown(thrown);
  if (seen instanceof Error) return seen;
  try {
    return new Error(String(seen));
  } catch (cause) {
    return new Error('Something was thrown that is no Error and has no text.', { cause });
  }
}
