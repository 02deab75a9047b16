import type { Runtime } from '../runtime/runtime.js';
import { onAbort } from './abort-wait.js';
import type { GetEventOptions } from '../api/messages.js';
import type { EventAddress, FoundEvent, WorkflowStore } from '../store/store.js';
import { parseDuration } from './duration.js';
import { valueOfEvent } from './found-event.js';
import { checkKnownOptions } from './known-options.js';
import { checkEventKey } from './message-arguments.js';
import type { Serializer } from './serializer.js';
import type { ArrivalWatches } from './watch.js';
import { checkWorkflowId } from './workflow-id.js';

const GET_EVENT_OPTIONS: ReadonlySet<string> = new Set<keyof GetEventOptions>(['timeout', 'signal']);

/** @throws InvalidArgumentError */
export function checkGetEvent(
  workflowId: unknown,
  key: unknown,
  options: GetEventOptions,
): { readonly event: EventAddress; readonly timeoutMs: number | null } {
  checkKnownOptions(options, GET_EVENT_OPTIONS, 'getEvent');
  return {
    event: { workflowId: checkWorkflowId(workflowId), key: checkEventKey(key) },
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout'),
  };
}

export interface EventReaderParts {
  readonly store: Pick<WorkflowStore, 'readEvents'>;
  readonly arrivals: ArrivalWatches;
  readonly serializer: Serializer;
  readonly runtime: Runtime;
}

/** Reads events from outside of workflows. */
export class EventReader {
  readonly #parts: EventReaderParts;

  constructor(parts: EventReaderParts) {
    this.#parts = parts;
  }

  /** Waits until the event is set; `undefined` when it was not in time. */
  async await(event: EventAddress, timeoutMs: number | null, signal: AbortSignal | undefined): Promise<unknown> {
    signal?.throwIfAborted();
    const found = await this.#await(event, timeoutMs, signal);
    return found === undefined ? undefined : this.#parts.serializer.decode(valueOfEvent(event, found));
  }

  async #await(
    event: EventAddress,
    timeoutMs: number | null,
    signal: AbortSignal | undefined,
  ): Promise<FoundEvent | undefined> {
    const { store, arrivals, runtime } = this.#parts;
    const watch = arrivals.events.watch(event);
    const cleanUps: (() => void)[] = [];
    try {
      // Watched before it is looked at: what comes in between is not missed.
      const [first] = await store.readEvents([event]);
      if (first !== undefined || timeoutMs === 0) return first;
      const ends: Promise<FoundEvent | undefined>[] = [watch.next()];
      if (timeoutMs !== null) {
        ends.push(
          new Promise((resolve) => {
            cleanUps.push(
              runtime.startTimer(timeoutMs, () => {
                resolve(undefined);
              }),
            );
          }),
        );
      }
      if (signal !== undefined) {
        ends.push(
          new Promise((_, reject) => {
            cleanUps.push(onAbort(signal)(reject));
          }),
        );
      }
      const found = await Promise.race(ends);
      // What came just in time counts, also if nobody has told of it.
      return found ?? (await store.readEvents([event]))[0];
    } finally {
      for (const cleanUp of cleanUps) cleanUp();
      watch.stop();
    }
  }
}
