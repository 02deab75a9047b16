import type { Logger } from './api/logger.js';
import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { Query, Update, UpdateOptions } from './api/signals.js';
import type { StandardSchema } from './api/standard-schema.js';
import type { Driver } from './drivers/driver.js';
import { Arrivals } from './engine/arrivals.js';
import { readEvent, sendMessage } from './engine/durable-messages.js';
import type { Engine } from './engine/engine.js';
import { checkGetEvent, EventReader } from './engine/event-reader.js';
import type { HandleMessaging } from './engine/handle.js';
import { checkSend } from './engine/message-arguments.js';
import { durableExecution } from './engine/scope.js';
import { durableChannel, sendUpdate, type UpdateChannel } from './engine/send-update.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { Messenger } from './fleet/messenger.js';
import { QueryDesk } from './fleet/query-desk.js';
import { Questioner, type RunningHere } from './fleet/questioner.js';
import type { Runtime } from './runtime/runtime.js';
import type { ExecutorIdentity } from './store/store.js';
import { PostgresMessageStore } from './store/postgres/postgres-message-store.js';
import { PostgresQueryStore } from './store/postgres/postgres-query-store.js';
import type { PostgresStore } from './store/postgres/postgres-store.js';
import type { ValueSerializer } from './values/index.js';
import { quietly } from './engine/quietly.js';

export interface MessagingParts {
  readonly runtime: Runtime;
  readonly driver: Driver;
  readonly schema: string;
  readonly store: PostgresStore;
  readonly serializer: ValueSerializer;
  readonly pollMs: number;
  /** Asked directly about what runs in this process; undefined where nothing does. */
  readonly engine: (() => RunningHere) | undefined;
}

/**
 * Messages, events, queries and updates, and who waits here for any: durable calls inside a workflow, plain ones everywhere
 * else.
 */
export class Messaging implements HandleMessaging {
  readonly arrivals: Arrivals;
  readonly queryStore: PostgresQueryStore;
  readonly #messageStore: PostgresMessageStore;
  readonly #messenger: Messenger;
  readonly #events: EventReader;
  readonly #questioner: Questioner;
  readonly #plainChannel: UpdateChannel;
  readonly #parts: MessagingParts;

  constructor(parts: MessagingParts) {
    const { runtime, driver, schema, store, serializer, pollMs, engine } = parts;
    this.#parts = parts;
    const announce = (workflowId: string): void => {
      store.announceMessage(workflowId);
    };
    this.arrivals = new Arrivals(store, pollMs, runtime);
    this.#messageStore = new PostgresMessageStore({ driver, schema, announce });
    this.queryStore = new PostgresQueryStore({ driver, schema, announce });
    this.#messenger = new Messenger({
      store: this.#messageStore,
      serializer,
      onSent: (workflowId) => {
        this.arrivals.check([workflowId]);
      },
    });
    this.#events = new EventReader({ runtime, store, arrivals: this.arrivals, serializer });
    this.#questioner = new Questioner({
      runtime,
      store: this.queryStore,
      workflows: store,
      serializer,
      pollMs,
      engine,
    });
    this.#plainChannel = {
      serializer,
      newId: () => Promise.resolve(runtime.randomUuid()),
      send: (workflowId, topic, message, options) => this.#messenger.send(workflowId, topic, message, options),
      awaitReply: (reply, timeoutMs, signal) => this.#events.await(reply, timeoutMs, signal),
    };
  }

  send(
    workflowId: string,
    topic: string,
    message: unknown,
    options: SendOptions,
    schema?: StandardSchema,
  ): Promise<void> {
    return quietly(async () => {
      checkSend(workflowId, topic, options);
      const sender = durableExecution();
      return sender === undefined
        ? this.#messenger.send(workflowId, topic, message, options, schema)
        : sendMessage(sender, workflowId, topic, message, options, schema);
    });
  }

  getEvent(workflowId: string, key: string, options: GetEventOptions): Promise<unknown> {
    return quietly(async () => {
      const { event, timeoutMs } = checkGetEvent(workflowId, key, options);
      const reader = durableExecution();
      return reader === undefined
        ? this.#events.await(event, timeoutMs, options.signal)
        : readEvent(reader, event, timeoutMs);
    });
  }

  update<Sent, Result>(
    workflowId: string,
    update: Pick<Update<Sent, Result, unknown>, 'name' | 'input'>,
    input: Sent,
    options: UpdateOptions,
  ): Promise<Result> {
    return quietly(async () => {
      checkWorkflowId(workflowId);
      const asker = durableExecution();
      const channel = asker === undefined ? this.#plainChannel : durableChannel(asker);
      return sendUpdate(channel, workflowId, update, input, options);
    });
  }

  async query<Arguments extends unknown[], Result>(
    workflowId: string,
    { name, timeoutMs }: Query<Arguments, Result>,
    args: Arguments,
  ): Promise<Result> {
    checkWorkflowId(workflowId);
    return (await this.#questioner.ask({ workflowId, name, timeoutMs }, args)) as Result;
  }

  /** Where questions of other processes about what this executor runs are answered. */
  deskOf(engine: Engine, executor: { readonly identity: ExecutorIdentity }, logger: Logger): QueryDesk {
    const { runtime, serializer, pollMs } = this.#parts;
    return new QueryDesk({
      runtime,
      store: this.queryStore,
      engine,
      serializer,
      logger,
      identity: () => executor.identity,
      pollMs,
    });
  }

  /** There may be something new of these workflows; null: of any. */
  check(workflowIds: readonly string[] | null): void {
    this.arrivals.check(workflowIds);
    this.#questioner.check(workflowIds);
  }

  /** These workflows have ended, or may have; null: any may have. */
  checkEnds(workflowIds: readonly string[] | null): void {
    this.arrivals.events.check(workflowIds);
    this.#questioner.check(workflowIds);
  }

  close(): void {
    this.arrivals.close();
    this.#questioner.close();
    this.queryStore.close();
    this.#messageStore.close();
  }
}
