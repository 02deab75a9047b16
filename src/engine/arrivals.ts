import type { Runtime } from '../runtime/runtime.js';
import type { EventAddress, FoundEvent, MessageTopic, WorkflowStore } from '../store/store.js';
import { ReceiverLines } from './receiver-lines.js';
import type { ArrivalWatches } from './watch.js';
import { Watcher } from './watcher.js';

/** Who waits in this process for messages and for events. */
export class Arrivals implements ArrivalWatches {
  readonly messages: Watcher<MessageTopic, true>;
  readonly events: Watcher<EventAddress, FoundEvent>;
  readonly lines = new ReceiverLines();

  constructor(store: Pick<WorkflowStore, 'findMessages' | 'readEvents'>, pollMs: number, runtime: Runtime) {
    this.messages = new Watcher(
      async (topics) => (await store.findMessages(topics)).map((isThere) => (isThere ? true : undefined)),
      pollMs,
      runtime,
    );
    this.events = new Watcher((events) => store.readEvents(events), pollMs, runtime);
  }

  check(workflowIds: readonly string[] | null): void {
    this.messages.check(workflowIds);
    this.events.check(workflowIds);
  }

  close(): void {
    this.messages.close();
    this.events.close();
  }
}
