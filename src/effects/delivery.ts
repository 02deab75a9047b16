import type { OutboxEvent, OutboxHandler } from '../api/outbox.js';
import { onAbort } from '../engine/abort-wait.js';
import { startDecoding } from '../engine/decoding.js';
import type { Serializer } from '../engine/serializer.js';
import { whatWasThrown } from '../engine/thrown.js';
import { within } from '../engine/timer.js';
import { RetryableError } from '../errors/step-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ClaimedEvent } from '../store/outbox-store.js';

/** What one attempt came to. */
export type DeliveryEnd =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The process shuts down, and the handler has not said that it delivered. */
  | { readonly kind: 'interrupted' };

/** One attempt to deliver an event. */
export class Delivery {
  readonly #runtime: Runtime;
  readonly #claimed: ClaimedEvent;
  readonly #handler: OutboxHandler;
  readonly #serializer: Serializer;
  readonly #timeoutMs: number;
  readonly #controller = new AbortController();
  readonly #interruption = new AbortController();
  #isHandling = false;
  /** When the handler has settled, also one that goes on after its time. */
  #handled: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly runtime: Runtime;
    readonly claimed: ClaimedEvent;
    readonly handler: OutboxHandler;
    readonly serializer: Serializer;
    readonly timeoutMs: number;
  }) {
    this.#runtime = parts.runtime;
    this.#claimed = parts.claimed;
    this.#handler = parts.handler;
    this.#serializer = parts.serializer;
    this.#timeoutMs = parts.timeoutMs;
  }

  /** Never rejects. */
  async run(): Promise<DeliveryEnd> {
    try {
      const payload = startDecoding(this.#serializer, this.#claimed.payload);
      await payload.done;
      await this.#handle(this.#eventOf(payload.take()));
      return { kind: 'delivered' };
    } catch (thrown) {
      return this.#interruption.signal.aborted
        ? { kind: 'interrupted' }
        : { kind: 'failed', error: whatWasThrown(thrown) };
    }
  }

  /** Fires the signal, since the process shuts down. */
  interrupt(reason: Error): void {
    this.#controller.abort(reason);
    this.#interruption.abort();
  }

  /** Whether the handler is still at it, perhaps after its time. */
  get isHandling(): boolean {
    return this.#isHandling;
  }

  /** Resolves when the handler has settled. One that does not heed its signal may take long after its attempt is over. */
  async handled(): Promise<void> {
    await this.#handled.catch(() => undefined);
  }

  /** Waits for the handler to settle; not longer than that, and not for one that goes on while the process shuts down. */
  async overtime(ms: number): Promise<'over' | 'interrupted'> {
    const { signal } = this.#interruption;
    await within(this.#runtime, Promise.race([this.handled(), new Promise(onAbort(signal))]), ms);
    return this.#isHandling && signal.aborted ? 'interrupted' : 'over';
  }

  #eventOf(payload: unknown): OutboxEvent {
    const { eventId, topic, key, workflowId, addedAt } = this.#claimed;
    return { id: eventId, topic, key, payload, workflowId, addedAt };
  }

  #handle(event: OutboxEvent): Promise<unknown> {
    const { signal } = this.#controller;
    signal.throwIfAborted();
    this.#isHandling = true;
    const handling = (async () => {
      try {
        await this.#handler(event, { signal, attempt: this.#claimed.attempts });
      } finally {
        this.#isHandling = false;
      }
    })();
    this.#handled = handling;
    return new Promise((resolve, reject) => {
      const cancel = this.#runtime.startTimer(this.#timeoutMs, () => {
        const error = new RetryableError(
          `The delivery took longer than ${String(this.#timeoutMs)} ms. Its signal has fired; its result is discarded.`,
        );
        this.#controller.abort(error);
        reject(error);
      });
      handling.then(resolve, reject).finally(cancel);
    });
  }
}
