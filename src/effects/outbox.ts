import type { OutboxOperations, OutsideOutboxAddOptions } from '../api/outbox.js';
import { addEvent } from '../engine/durable-outbox.js';
import { checkOutboxAdd, encodePayload } from '../engine/outbox-arguments.js';
import { quietly } from '../engine/quietly.js';
import { currentScope } from '../engine/scope.js';
import type { Serializer } from '../engine/serializer.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import { runnerOf } from '../fleet/callers-transaction.js';
import type { Runtime } from '../runtime/runtime.js';
import type { OutboxStore } from '../store/outbox-store.js';

export interface OutboxParts {
  readonly runtime: Runtime;
  readonly store: Pick<OutboxStore, 'add' | 'addIn'>;
  readonly serializer: Serializer;
}

/** Adds events: durably inside a workflow, and by themselves or in the caller's transaction everywhere else. */
export class Outbox implements OutboxOperations {
  readonly #parts: OutboxParts;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  add(topic: string, payload: unknown, options: OutsideOutboxAddOptions = {}): Promise<void> {
    return quietly(async () => {
      const scope = currentScope();
      return scope === undefined ? this.#addOutside(topic, payload, options) : addEvent(scope, topic, payload, options);
    });
  }

  async #addOutside(topic: string, payload: unknown, options: OutsideOutboxAddOptions): Promise<void> {
    const named = checkOutboxAdd(topic, options);
    const run = options.transaction === undefined ? undefined : runnerOf(options.transaction);
    const { runtime, store, serializer } = this.#parts;
    const encoded = encodePayload(serializer, payload);
    const text = typeof encoded === 'string' ? encoded : await encoded;
    const event = { ...named, payload: text, eventId: runtime.randomUuid() };
    if (run !== undefined) {
      await store.addIn(run, event);
      return;
    }
    const answer = await store.add(event);
    if (answer.kind === 'refused') {
      throw new WriteRefusedError(`The database refuses the event of topic "${topic}".`, { cause: answer.error });
    }
  }
}
