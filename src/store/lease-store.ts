/** Named leases, by the database's clock. */
export interface LeaseStore {
  /** Takes the lease if nobody has it. Safe to repeat with the same `holder`. */
  acquire(lease: LeaseRequest): Promise<LeaseAnswer>;
  /** False: somebody else has it. One try: the caller knows how long it has time. */
  renew(name: string, holder: string, ttlMs: number): Promise<boolean>;
}

export interface LeaseRequest {
  readonly name: string;
  /** A random UUID. */
  readonly holder: string;
  /** Who that is, for people. */
  readonly heldBy: string;
  readonly ttlMs: number;
}

export type LeaseAnswer =
  | { readonly kind: 'acquired'; readonly token: number }
  | { readonly kind: 'held'; readonly heldBy: string; readonly remainingMs: number };
