import type { StepContext } from '../api/context.js';
import type { EventBuffer } from './event-buffer.js';

/** An attempt of a step while its body runs. */
export interface RunningAttempt extends StepContext {
  /** The body has returned, thrown, or run out of time: what it still writes is of no attempt. */
  readonly isOver: boolean;
  /** What its body adds to the outbox. */
  readonly events: EventBuffer;
  /** Counts this attempt's entries of a stream that are written once per step, from 0. */
  nextOncePlace(stream: string): number;
}
