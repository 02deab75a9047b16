/** An event that a durable call adds, together with its record. */
export interface EventToAdd {
  readonly topic: string;
  readonly key: string | null;
  /** An encoded value. */
  readonly payload: string;
}
