import { HoldfastError } from './holdfast-error.js';

/** The store was closed while this was under way: whether it took effect is unknown. */
export class StoreClosedError extends HoldfastError {
  override readonly code = 'STORE_CLOSED';
  override readonly name = 'StoreClosedError';
}
