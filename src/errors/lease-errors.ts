import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** Somebody else holds the lease, and did for as long as was waited. The function did not run. */
export class LeaseHeldError extends HoldfastError {
  override readonly code = 'LEASE_HELD';
  override readonly name = 'LeaseHeldError';
}

/** The lease was lost while the function ran. What it did after that is protected by fences only. */
export class LeaseLostError extends HoldfastError {
  override readonly code = 'LEASE_LOST';
  override readonly name = 'LeaseLostError';
}

/** The resource has accepted a higher token: another holder has taken over. The transaction is to be rolled back. */
export class FenceRefusedError extends HoldfastError {
  override readonly code = 'FENCE_REFUSED';
  override readonly name = 'FenceRefusedError';
  /** The token that was accepted. */
  readonly accepted: number;

  constructor(message: string, details: { readonly accepted: number }, options?: HoldfastErrorOptions) {
    super(message, options);
    this.accepted = details.accepted;
  }
}
