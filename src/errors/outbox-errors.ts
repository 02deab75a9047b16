import { HoldfastError } from './holdfast-error.js';

/** There is no event of this ID in the outbox: it was delivered or discarded, or never was. Nothing was written. */
export class OutboxEventNotFoundError extends HoldfastError {
  override readonly code = 'OUTBOX_EVENT_NOT_FOUND';
  override readonly name = 'OutboxEventNotFoundError';
}
