import type { EventAddress, FoundEvent, MessageTopic } from '../store/store.js';
import type { ReceiverLines } from './receiver-lines.js';

/** Somebody's look at one place, until it is stopped. */
export interface Watch<Found> {
  /**
   * Resolves when something is found there. Looks at once if that was hinted at since the watch began, or since it was found
   * empty: so begin to watch, then look yourself, then wait, and nothing that comes in between is missed.
   */
  next(): Promise<Found>;
  stop(): void;
}

/** Places of one kind, where somebody can wait for something to come. */
export interface Watches<Place, Found> {
  watch(place: Place): Watch<Found>;
  /** Somebody hints that there is something in places of these workflows; null: of any. */
  check(workflowIds: Iterable<string> | null): void;
}

/** Where executions wait for messages and for events. */
export interface ArrivalWatches {
  readonly messages: Watches<MessageTopic, true>;
  readonly events: Watches<EventAddress, FoundEvent>;
  readonly lines: ReceiverLines;
  /** Somebody hints that these workflows have got a message or set an event; null: that any may have. */
  check(workflowIds: readonly string[] | null): void;
}
