import { PayloadTooLargeError } from '../errors/value-errors.js';
import type { EventToAdd } from '../store/event-to-add.js';

/** All payloads, topics and keys of one attempt together, in bytes: they are one statement, and in memory until then. */
const MAX_BYTES = 16 * 2 ** 20;

export const NO_EVENTS: readonly EventToAdd[] = [];

type Slot =
  { readonly kind: 'pending'; readonly done: Promise<void> } | { readonly kind: 'ready'; readonly event: EventToAdd };

/**
 * The events that one attempt of a step has added. They are recorded together with the step's result if this attempt brings it, and
 * forgotten otherwise.
 */
export class EventBuffer {
  readonly #slots: (Slot | undefined)[] = [];
  #bytes = 0;
  #isTaken = false;

  /** Nothing can be added any more: what was added is being recorded, or forgotten. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /**
   * Takes the next place at once, however long the payload takes to be encoded. What cannot be encoded, or does not fit, is left out.
   * @throws PayloadTooLargeError
   */
  async add(event: Omit<EventToAdd, 'payload'>, encode: () => string | Promise<string>): Promise<void> {
    const encoded = encode();
    const place = this.#slots.length;
    if (typeof encoded === 'string') {
      this.#slots.push({ kind: 'ready', event: this.#fit({ ...event, payload: encoded }) });
      return;
    }
    const done = encoded
      .then((payload) => {
        this.#slots[place] = { kind: 'ready', event: this.#fit({ ...event, payload }) };
      })
      .catch((error: unknown) => {
        this.#slots[place] = undefined;
        throw error;
      });
    this.#slots.push({ kind: 'pending', done });
    await done;
  }

  #fit(event: EventToAdd): EventToAdd {
    const actualBytes = this.#bytes + Buffer.byteLength(event.topic + (event.key ?? '') + event.payload);
    if (actualBytes > MAX_BYTES) throw new PayloadTooLargeError({ actualBytes, limitBytes: MAX_BYTES });
    this.#bytes = actualBytes;
    return event;
  }

  /** All of them, once their payloads are encoded. */
  take(): readonly EventToAdd[] | Promise<readonly EventToAdd[]> {
    this.#isTaken = true;
    return this.#slots.length === 0 ? NO_EVENTS : this.#take();
  }

  async #take(): Promise<readonly EventToAdd[]> {
    const pending = this.#slots.flatMap((slot) => (slot?.kind === 'pending' ? [slot.done] : []));
    if (pending.length > 0) await Promise.allSettled(pending);
    return this.#slots.flatMap((slot) => (slot?.kind === 'ready' ? [slot.event] : []));
  }
}
