import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/**
 * The workflow that a message was sent to has ended: nobody will receive it. Nothing was written, unless it is an update that was
 * received and is not answered any more.
 */
export class ReceiverEndedError extends HoldfastError {
  override readonly code = 'RECEIVER_ENDED';
  override readonly name = 'ReceiverEndedError';
  /** What the workflow ended as. `CONTINUED`: it goes on, but the run that had received the update has continued as new. */
  readonly status: string;

  constructor(message: string, details: { readonly status: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.status = details.status;
  }
}

/** The workflow's code has not said how it answers this query. */
export class QueryNotHandledError extends HoldfastError {
  override readonly code = 'QUERY_NOT_HANDLED';
  override readonly name = 'QueryNotHandledError';
}

/** A query was not answered in time. */
export class QueryTimeoutError extends HoldfastError {
  override readonly code = 'QUERY_TIMEOUT';
  override readonly name = 'QueryTimeoutError';
}

/** The workflow has refused an update; `cause` says why. It was not carried out. */
export class UpdateRejectedError extends HoldfastError {
  override readonly code = 'UPDATE_REJECTED';
  override readonly name = 'UpdateRejectedError';
}

/** An update was not answered in time. It stays sent, and may yet be carried out. */
export class UpdateTimeoutError extends HoldfastError {
  override readonly code = 'UPDATE_TIMEOUT';
  override readonly name = 'UpdateTimeoutError';
  /** To ask again: the update is carried out once. */
  readonly updateId: string;

  constructor(message: string, details: { readonly updateId: string }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.updateId = details.updateId;
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
