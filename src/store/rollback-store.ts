// What is on record of a rollback.

/** What led to a rollback. */
export type RollbackCause = 'failed' | 'timed-out' | 'cancelled';

export interface RollbackRecord {
  /** Above every number that was used before. */
  readonly seq: number;
  readonly cause: RollbackCause;
  /** The encoded error that the workflow will end with. */
  readonly error: string;
}

export interface PlannedCompensation {
  readonly seq: number;
  readonly name: string;
  /** The number of the step that it undoes; null: it is a function that the code registered. */
  readonly undoes: number | null;
}

export interface CompensationFailure {
  readonly seq: number;
  /** Encoded. */
  readonly error: string;
  /** For the attention list. */
  readonly detail: string;
}
