import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** As `MapResult` of the API. */
type Result = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** More children of a `mapWorkflows` have failed than it tolerates. Its cause is the first failure. */
export class MapFailedError extends HoldfastError {
  override readonly code = 'MAP_FAILED';
  override readonly name = 'MapFailedError';
  /** One entry an input, in their order. Not part of the stored error: read it in the workflow that called. */
  declare readonly results: readonly Result[];

  constructor(message: string, details: { readonly results: readonly Result[] }, options?: HoldfastErrorOptions) {
    super(message, options);
    // Not enumerable, and so not stored: a thousand results would be too large for an error.
    Object.defineProperty(this, 'results', { value: details.results });
  }
}

/** The map was over before it came to this input: no child was started for it. */
export class MapInputSkippedError extends HoldfastError {
  override readonly code = 'MAP_INPUT_SKIPPED';
  override readonly name = 'MapInputSkippedError';
}
