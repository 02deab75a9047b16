import { Admin } from './admin/admin.js';
import type { Logger } from './api/logger.js';
import { leasesOn } from './effects/leases-on.js';
import type { Leases } from './effects/leases.js';
import { Outbox } from './effects/outbox.js';
import { onAbort } from './engine/abort-wait.js';
import { Handle, type HandleHost } from './engine/handle.js';
import { OutcomeWaiter } from './engine/outcome-waiter.js';
import { StreamWatcher } from './engine/stream-watcher.js';
import type { FixedErrors } from './fixed-errors.js';
import { Enqueuer } from './fleet/enqueuer.js';
import type { PreparationParts } from './fleet/prepare-schedule.js';
import type { RunningHere } from './fleet/questioner.js';
import { Queues } from './fleet/queues.js';
import { Schedules } from './fleet/schedules.js';
import { Messaging } from './messaging.js';
import type { OpenDatabase } from './open-database.js';
import type { Runtime } from './runtime/runtime.js';
import type { StoreHints } from './store/store.js';
import { PostgresAdminStore } from './store/postgres/postgres-admin-store.js';
import { PostgresOutboxStore } from './store/postgres/postgres-outbox-store.js';
import { PostgresQueueStore } from './store/postgres/postgres-queue-store.js';
import { PostgresScheduleStore } from './store/postgres/postgres-schedule-store.js';
import { PostgresStore } from './store/postgres/postgres-store.js';
import type { ValueSerializer } from './values/index.js';

/** Longest time between two looks of those who wait here, in milliseconds, however rarely the process polls for work. */
const MOST_WAIT_POLL_MS = 1_000;

export interface SharedPartsOptions {
  readonly runtime: Runtime;
  readonly database: OpenDatabase;
  readonly schema: string;
  readonly notifications: boolean;
  readonly pollMs: number;
  readonly serializer: ValueSerializer;
  readonly logger: Logger;
  readonly errors: Pick<FixedErrors, 'cancelled'>;
  /** What a function or a name stands for. @throws WorkflowNotRegisteredError */
  readonly resolve: PreparationParts['resolve'];
  readonly prepare: PreparationParts['prepare'];
  /** What runs in this process; undefined where nothing does. */
  readonly engine: (() => RunningHere) | undefined;
  /** As whom this process holds leases. */
  readonly heldBy: () => string;
  /** Runs of schedules were enqueued here. */
  readonly onFired: () => void;
}

/** What a process has that knows the database, whether or not it runs workflows: an executor and a client alike. */
export class SharedParts {
  readonly store: PostgresStore;
  readonly queueStore: PostgresQueueStore;
  readonly scheduleStore: PostgresScheduleStore;
  readonly outboxStore: PostgresOutboxStore;
  readonly waiter: OutcomeWaiter;
  readonly messaging: Messaging;
  readonly streamWatcher: StreamWatcher;
  readonly admin: Admin;
  readonly queues: Queues;
  readonly schedules: Schedules;
  readonly leases: Leases;
  readonly outbox: Outbox;
  readonly enqueuer: Enqueuer;
  readonly #adminStore: PostgresAdminStore;
  readonly #handles: HandleHost;
  readonly #database: OpenDatabase;

  constructor(options: SharedPartsOptions) {
    const { runtime, database, schema, serializer, logger, errors } = options;
    const { resolve, prepare, engine, heldBy, onFired } = options;
    const { driver } = database;
    const pollMs = Math.min(MOST_WAIT_POLL_MS, options.pollMs);
    const cancelledError = errors.cancelled;
    const handleOf = (workflowId: string): Handle<unknown> => this.handleOf(workflowId);
    this.#database = database;
    this.store = new PostgresStore({ driver, schema, notifications: options.notifications });
    this.#adminStore = new PostgresAdminStore({ driver, schema });
    this.queueStore = new PostgresQueueStore({ driver, schema });
    this.scheduleStore = new PostgresScheduleStore({ driver, schema });
    this.outboxStore = new PostgresOutboxStore({
      driver,
      schema,
      announce: () => {
        this.store.announceEvents();
      },
    });
    this.waiter = new OutcomeWaiter(this.store, pollMs, runtime);
    this.messaging = new Messaging({ runtime, driver, schema, store: this.store, serializer, pollMs, engine });
    this.streamWatcher = new StreamWatcher(this.store.streams, pollMs, runtime);
    this.admin = new Admin({
      runtime,
      store: this.#adminStore,
      cancelledError,
      decode: (text) => serializer.decode(text),
      encode: (value) => serializer.encode(value),
      encodeError: (thrown) => serializer.encodeError(thrown),
    });
    this.queues = new Queues(this.queueStore);
    this.enqueuer = new Enqueuer({
      runtime,
      store: this.queueStore,
      prepare,
      serializer,
      handleOf,
      waiter: this.waiter,
    });
    this.schedules = new Schedules({
      runtime,
      store: this.scheduleStore,
      serializer,
      resolve,
      prepare,
      cancelledError,
      handleOf,
      onFired,
    });
    this.outbox = new Outbox({ runtime, store: this.outboxStore, serializer });
    this.leases = leasesOn({ runtime, driver, schema, logger, heldBy });
    this.#handles = this.#handleHost(options);
  }

  /** The ID has been checked, or is one on record. */
  handleOf<Result>(workflowId: string): Handle<Result> {
    return new Handle(this.#handles, workflowId);
  }

  /** What those who wait here are told. */
  hints(): Omit<StoreHints, 'onQueries' | 'onOutbox' | 'onWork' | 'onSchedules'> {
    const { waiter, messaging, streamWatcher } = this;
    const onOutcomes = (workflowIds: readonly string[] | null): void => {
      waiter.check(workflowIds);
      messaging.checkEnds(workflowIds);
    };
    return {
      // It may have an outcome that somebody waits for.
      onControl: (workflowId) => {
        onOutcomes([workflowId]);
      },
      onOutcomes,
      onMessages: (workflowIds) => {
        messaging.check(workflowIds);
      },
      onStreams: (workflowIds) => {
        streamWatcher.hint(workflowIds);
      },
      onGap: () => {
        messaging.check(null);
        waiter.check(null);
        streamWatcher.hint(null);
      },
    };
  }

  /** Everyone who waits here for something is told that it will not come. */
  stopWaiting(): void {
    this.streamWatcher.close();
    this.waiter.close();
    this.messaging.close();
  }

  /**
   * Lets go of the database, and of the embedded server if there is one. Leases are to be closed before.
   *
   * @param drainMs How long writes under way get to be answered. Who still waits meanwhile may be served by them.
   */
  async close({ drainMs }: { readonly drainMs: number }): Promise<void> {
    this.streamWatcher.close();
    await this.store.close({ drainMs });
    this.stopWaiting();
    this.queueStore.close();
    this.scheduleStore.close();
    this.outboxStore.close();
    await this.#adminStore.close();
    await this.#database.driver.close();
    await this.#database.stop();
  }

  #handleHost({ serializer, engine }: SharedPartsOptions): HandleHost {
    return {
      serializer,
      streams: this.store.streams,
      streamWatcher: this.streamWatcher,
      waitForResult: (workflowId, signal) =>
        this.waiter.wait(workflowId, {
          runsHere: engine?.().runningExecution(workflowId) !== undefined,
          ...(signal === undefined ? {} : { onGone: onAbort(signal) }),
        }),
      statusOf: async (workflowId) => (await this.admin.get(workflowId)).status,
      cancel: async (workflowId, options) => {
        await this.admin.cancel(workflowId, options);
      },
      messaging: this.messaging,
    };
  }
}
