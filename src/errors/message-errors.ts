import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** The workflow that a message was sent to has ended: nobody will receive it. Nothing was written. */
export class ReceiverEndedError extends HoldfastError {
  override readonly code = 'RECEIVER_ENDED';
  override readonly name = 'ReceiverEndedError';
  /** What the workflow ended as. */
  readonly status: string;

  constructor(message: string, details: { readonly status: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.status = details.status;
  }
}

/** The workflow has ended without setting the event that somebody waits for. */
export class EventNotSetError extends HoldfastError {
  override readonly code = 'EVENT_NOT_SET';
  override readonly name = 'EventNotSetError';
  /** What the workflow ended as. */
  readonly status: string;

  constructor(message: string, details: { readonly status: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.status = details.status;
  }
}
