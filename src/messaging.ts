import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { Driver } from './drivers/driver.js';
import { Arrivals } from './engine/arrivals.js';
import { EventReader } from './engine/event-reader.js';
import { Messenger } from './fleet/messenger.js';
import { PostgresMessageStore } from './store/postgres/postgres-message-store.js';
import type { PostgresStore } from './store/postgres/postgres-store.js';
import type { ValueSerializer } from './values/index.js';

export interface MessagingParts {
  readonly driver: Driver;
  readonly schema: string;
  readonly store: PostgresStore;
  readonly serializer: ValueSerializer;
  readonly pollMs: number;
}

/** Messages and events from outside of workflows, and who waits here for any. */
export class Messaging {
  readonly arrivals: Arrivals;
  readonly #store: PostgresMessageStore;
  readonly #messenger: Messenger;
  readonly #events: EventReader;

  constructor({ driver, schema, store, serializer, pollMs }: MessagingParts) {
    this.arrivals = new Arrivals(store, pollMs);
    this.#store = new PostgresMessageStore({
      driver,
      schema,
      announce: (workflowId) => {
        store.announceMessage(workflowId);
      },
    });
    this.#messenger = new Messenger({
      store: this.#store,
      serializer,
      onSent: (workflowId) => {
        this.arrivals.check([workflowId]);
      },
    });
    this.#events = new EventReader({ store, arrivals: this.arrivals, serializer });
  }

  send(workflowId: string, topic: string, message: unknown, options: SendOptions): Promise<void> {
    return this.#messenger.send(workflowId, topic, message, options);
  }

  getEvent(workflowId: string, key: string, options: GetEventOptions): Promise<unknown> {
    return this.#events.read(workflowId, key, options);
  }

  close(): void {
    this.arrivals.close();
    this.#store.close();
  }
}
