import { OutboxEventNotFoundError } from '../errors/outbox-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { AdminStore, EventRow } from '../store/admin-store.js';
import type { EventControlResult, OutboxEventDetails, Page } from './admin-answers.js';
import type { OutboxAdminOperations } from './admin-api.js';
import type { ControlRequest, OutboxEventFilter } from './admin-requests.js';
import { parseArgument, SCHEMAS } from './arguments.js';
import { readStoredValue, type ValueReader } from './details.js';

export interface OutboxAdminParts extends ValueReader {
  readonly runtime: Runtime;
  readonly store: Pick<AdminStore, 'listEvents' | 'redeliverEvent' | 'discardEvent'>;
}

/** {@link OutboxAdminOperations} on an {@link AdminStore}. */
export class OutboxAdmin implements OutboxAdminOperations {
  readonly #parts: OutboxAdminParts;

  constructor(parts: OutboxAdminParts) {
    this.#parts = parts;
  }

  async list(filter: OutboxEventFilter = {}): Promise<Page<OutboxEventDetails>> {
    const { limit, cursor, state, topic, payload } = parseArgument(SCHEMAS.events, filter, 'The filter');
    const { items, nextCursor } = await this.#parts.store.listEvents({
      limit,
      cursor: cursor ?? null,
      isDead: state === undefined ? null : state === 'dead',
      topic: topic ?? null,
      payload,
    });
    return { items: await Promise.all(items.map((row) => this.#detailsOf(row))), nextCursor };
  }

  redeliver(eventId: string, options: ControlRequest = {}): Promise<EventControlResult> {
    return this.#control('redeliver', eventId, options);
  }

  discard(eventId: string, options: ControlRequest = {}): Promise<EventControlResult> {
    return this.#control('discard', eventId, options);
  }

  async #control(verb: 'redeliver' | 'discard', eventId: unknown, options: unknown): Promise<EventControlResult> {
    const { actor, reason = null } = parseArgument(SCHEMAS.control, options, `The options of ${verb}`);
    const id = parseArgument(SCHEMAS.eventId, eventId, 'The ID of the event');
    const { runtime, store } = this.#parts;
    const request = { eventId: id, nonce: runtime.randomUuid(), by: { actor, reason } };
    const result = await (verb === 'redeliver' ? store.redeliverEvent(request) : store.discardEvent(request));
    if (result === 'missing') {
      throw new OutboxEventNotFoundError(
        `There is no event "${id}" in the outbox: it was delivered or discarded, or never was.`,
      );
    }
    return { eventId: id, result };
  }

  async #detailsOf({ payload, ...details }: EventRow): Promise<OutboxEventDetails> {
    if (payload === null) return details;
    return {
      ...details,
      payload: await readStoredValue(payload.payload, this.#parts),
      ...(payload.error !== null && { lastError: await readStoredValue(payload.error, this.#parts) }),
    };
  }
}
