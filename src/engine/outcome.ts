import type { TerminalStatus } from '../store/store.js';

/** A workflow's recorded outcome, as text. */
export interface Outcome {
  readonly status: TerminalStatus;
  readonly output: string | null;
  readonly error: string | null;
}
