/**
 * Time and chance, as the parts of a process get them: whatever measures, waits or draws lots asks this. In a process it is
 * {@link systemRuntime}. Under another one time passes when a test says so, and a seed decides what is drawn.
 */
export interface Runtime {
  /** The monotonic clock of the process, in milliseconds from some moment on. */
  now(): number;
  /** The wall clock, milliseconds since 1970. Somebody may set it: it decides nothing, it only makes careful. */
  wallNow(): number;
  /** Calls back once, never before `delayMs` have passed by {@link now}. Returns how to cancel it. */
  startTimer(delayMs: number, callback: () => void): () => void;
  /** Calls back in a later round of the event loop: when whatever runs now, and all that it settles, has come to rest. */
  nextTurn(callback: () => void): void;
  /** A number from 0 (included) to 1 (excluded). Not for secrets. */
  random(): number;
  /** A UUID of version 4. */
  randomUuid(): string;
  /** A UUID of version 7 (RFC 9562): sorts by time, so that new rows land together in an index. */
  sortableUuid(): string;
}
