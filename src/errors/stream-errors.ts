import { HoldfastError } from './holdfast-error.js';

/** The stream has been closed by `closeStream`: nothing can be written to it. Nothing was written. */
export class StreamClosedError extends HoldfastError {
  override readonly code = 'STREAM_CLOSED';
  override readonly name = 'StreamClosedError';
}

/**
 * A rewind, or a delete, took back entries that this reader has got already: what comes now does not continue them.
 *
 * Remedy: forget what was read, and read again from the beginning.
 */
export class StreamRewrittenError extends HoldfastError {
  override readonly code = 'STREAM_REWRITTEN';
  override readonly name = 'StreamRewrittenError';
  /** The offset that would have been read next. */
  readonly offset: number;

  constructor(message: string, details: { readonly offset: number }) {
    super(message);
    this.offset = details.offset;
  }
}
