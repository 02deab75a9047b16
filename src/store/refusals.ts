/** The ownership check failed; see the failure table in docs/protocol.md. */
export type Denied =
  | { readonly kind: 'lost' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'nondeterminism'; readonly found: string }
  /** The version kept moving without the token changing hands, through every retry. */
  | { readonly kind: 'conflict' };

/** The database refuses this very item, and would again. Nothing of it was written. */
export interface Refused {
  readonly kind: 'refused';
  readonly error: Error;
}
