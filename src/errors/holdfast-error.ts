/** What every Holdfast error can carry besides its message. */
export interface HoldfastErrorOptions {
  /** The error underneath, kept whole. */
  readonly cause?: unknown;
}

/**
 * The base of every error that Holdfast throws.
 *
 * Decide on {@link code} (stable across releases and across processes) or on the class; never on the
 * message, which is for people and may change. Every code, its cause and its remedy: `docs/errors.md`.
 */
export abstract class HoldfastError extends Error {
  /** Stable, upper-case identifier of the kind of error, for example `OWNERSHIP_LOST`. */
  abstract readonly code: string;
  /** A literal in every class, since a bundler may rename classes. */
  abstract override readonly name: string;

  constructor(message: string, options: HoldfastErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
  }
}
