import { hostname } from 'node:os';
import type { LeaseOperations } from './api/lease.js';
import type { Leases } from './effects/leases.js';
import { leasesOn } from './effects/leases-on.js';
import { within } from './engine/timer.js';
import { onAbort } from './engine/abort-wait.js';
import { Admin } from './admin/admin.js';
import type { Duration } from './api/duration.js';
import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { EnqueueItem, EnqueueOptions, QueueOperations } from './api/queue.js';
import type { ScheduleOperations } from './api/schedule.js';
import type { ReadStreamOptions, StreamEntry } from './api/stream.js';
import type { WorkflowHandle } from './api/workflow-handle.js';
import { checkClientOptions, type ClientOptions, type ClientSettings } from './client-options.js';
import type { Driver } from './drivers/driver.js';
import { workflowDefinition, workflowDefinitionOf, type WorkflowDefinition } from './engine/definitions.js';
import { Handle, type HandleHost } from './engine/handle.js';
import { OutcomeWaiter } from './engine/outcome-waiter.js';
import { prepareStart } from './engine/prepare-start.js';
import { StreamWatcher } from './engine/stream-watcher.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { HoldfastClosedError, WorkflowNotRegisteredError } from './errors/usage-errors.js';
import { encodeFixedErrors } from './fixed-errors.js';
import { Enqueuer, type EnqueueResult } from './fleet/enqueuer.js';
import { Queues } from './fleet/queues.js';
import { Schedules } from './fleet/schedules.js';
import { assertOneVersion } from './loaded-copies.js';
import { DEFAULT_POLL_MS } from './launch-options.js';
import { makeSerializer } from './make-serializer.js';
import { Messaging } from './messaging.js';
import { openDatabase } from './open-database.js';
import { stderrLogger } from './stderr-logger.js';
import { PostgresAdminStore } from './store/postgres/postgres-admin-store.js';
import { PostgresQueueStore } from './store/postgres/postgres-queue-store.js';
import { PostgresScheduleStore } from './store/postgres/postgres-schedule-store.js';
import { PostgresStore } from './store/postgres/postgres-store.js';
import type { ValueSerializer } from './values/index.js';

/** How long a client that closes tries to give up its leases, in milliseconds. */
const FINAL_RELEASE_MS = 2_000;

/** A workflow to be started by a client: its function, or only its name. */
type Target<Arguments extends unknown[], Result> = string | ((...args: Arguments) => Promise<Result>);

/** What `start` of a client takes. */
export type ClientStartOptions = Omit<EnqueueOptions, 'queue' | 'priority' | 'key'>;

/**
 * Starts workflows and asks about them, and runs none: for processes that leave the work to executors.
 *
 * A workflow that is given as a function is checked by its schema, and has its `maxAttempts` and `timeout`. One that is only
 * named has neither schema nor time limit, and the default of attempts.
 *
 * @example
 * await using client = await HoldfastClient.connect();
 * const handle = await client.enqueue('placeOrder', { queue: 'orders', key: 'tenant-7' }, order);
 */
export class HoldfastClient {
  /** Cancel, resume, rewind, fork, delete, list and look at workflows. */
  readonly admin: Admin;
  /** Defines, changes, pauses and shows queues. */
  readonly queues: QueueOperations;
  /** Defines, changes, pauses, triggers, backfills and shows schedules; executors fire them. */
  readonly schedules: ScheduleOperations;
  /** Named leases, leader election and fences. */
  readonly leases: LeaseOperations;
  readonly #leases: Leases;
  readonly #driver: Driver;
  readonly #stopDatabase: () => Promise<void>;
  readonly #store: PostgresStore;
  readonly #adminStore: PostgresAdminStore;
  readonly #queueStore: PostgresQueueStore;
  readonly #scheduleStore: PostgresScheduleStore;
  readonly #waiter: OutcomeWaiter;
  readonly #streamWatcher: StreamWatcher;
  readonly #enqueuer: Enqueuer;
  readonly #messaging: Messaging;
  readonly #handles: HandleHost;
  #closed: Promise<void> | undefined;

  /**
   * Connects and checks server and schema.
   * @throws InvalidArgumentError, LaunchTimeoutError, SchemaTooOldError, and what else `launch` finds; see docs/errors.md.
   */
  static async connect(options: ClientOptions = {}): Promise<HoldfastClient> {
    assertOneVersion();
    const settings = checkClientOptions(options);
    const serializer = makeSerializer(options);
    const { cancelled } = await encodeFixedErrors(serializer);
    const database = await openDatabase(
      { ...options, migrate: options.migrate ?? false },
      settings,
      options.logger ?? stderrLogger,
    );
    return new HoldfastClient(options, settings, serializer, cancelled, database.driver, database.stop);
  }

  private constructor(
    options: ClientOptions,
    settings: ClientSettings,
    serializer: ValueSerializer,
    cancelledError: string,
    driver: Driver,
    stopDatabase: () => Promise<void>,
  ) {
    const { schema, pollMs } = settings;
    this.#driver = driver;
    this.#stopDatabase = stopDatabase;
    this.#store = new PostgresStore({ driver, schema, notifications: options.notifications ?? true });
    this.#adminStore = new PostgresAdminStore({ driver, schema });
    this.#queueStore = new PostgresQueueStore({ driver, schema });
    const waitPollMs = Math.min(DEFAULT_POLL_MS, pollMs);
    this.#waiter = new OutcomeWaiter(this.#store, waitPollMs);
    this.#messaging = new Messaging({ driver, schema, store: this.#store, serializer, pollMs: waitPollMs });
    this.#streamWatcher = new StreamWatcher(this.#store.streams, waitPollMs);
    this.queues = new Queues(this.#queueStore);
    this.admin = new Admin({
      store: this.#adminStore,
      cancelledError,
      decode: (text) => serializer.decode(text),
    });
    this.#handles = {
      serializer,
      streams: this.#store.streams,
      streamWatcher: this.#streamWatcher,
      waitForResult: (workflowId, signal) =>
        this.#waiter.wait(workflowId, {
          runsHere: false,
          ...(signal === undefined ? {} : { onGone: onAbort(signal) }),
        }),
      statusOf: async (workflowId) => (await this.admin.get(workflowId)).status,
      cancel: async (workflowId, reason) => {
        await this.admin.cancel(workflowId, reason === undefined ? {} : { reason });
      },
      messaging: this.#messaging,
    };
    this.#enqueuer = new Enqueuer({
      store: this.#queueStore,
      prepare: (definition, args, startOptions, workflowId) =>
        prepareStart(definition, args, startOptions, workflowId, serializer),
      serializer,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
    });
    this.#scheduleStore = new PostgresScheduleStore({ driver, schema });
    this.schedules = this.#makeSchedules(serializer, cancelledError);
    const logger = options.logger ?? stderrLogger;
    const heldBy = (): string => `a client, process ${String(process.pid)} on ${hostname()}`;
    this.#leases = leasesOn({ driver, schema, logger, heldBy });
    this.leases = this.#leases;
    this.#listen();
  }

  /**
   * Has a workflow started by whichever executor knows its name and has room, or attaches to the one that has the given ID.
   * Promises what {@link HoldfastClient.enqueue} promises, without a queue and its limits.
   */
  async start<Arguments extends unknown[], Result>(
    workflow: Target<Arguments, Result>,
    options: ClientStartOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    return this.enqueue(workflow, options, ...args);
  }

  /**
   * Puts a workflow into a queue, or attaches to the one that has the given ID. When it returns, the workflow is on record (with
   * `transaction`: once that commits) and will be started when the queue's limits let it through.
   *
   * @throws QueueNotFoundError, WorkflowIdConflictError
   * @throws WorkflowDeduplicatedError with the ID of the workflow that holds the deduplication ID.
   * @throws InvalidArgumentError, SchemaViolationError, ValueNotSerializableError, PayloadTooLargeError, before anything is
   *   written.
   */
  async enqueue<Arguments extends unknown[], Result>(
    workflow: Target<Arguments, Result>,
    options: EnqueueOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    this.#assertOpen();
    return (await this.#enqueuer.enqueue(definitionFor(workflow), options, args)) as WorkflowHandle<Result>;
  }

  /** Enqueues many workflows with few statements, in the order of the list; as `holdfast.enqueueMany`. */
  async enqueueMany<Arguments extends unknown[], Result>(
    workflow: Target<Arguments, Result>,
    options: Omit<EnqueueOptions, 'workflowId'>,
    items: readonly EnqueueItem<Arguments>[],
  ): Promise<readonly EnqueueResult<Result>[]> {
    this.#assertOpen();
    const results = await this.#enqueuer.enqueueMany(definitionFor(workflow), options, items);
    return results as readonly EnqueueResult<Result>[];
  }

  /** Sends a message to a workflow, as `holdfast.send` outside of workflows. */
  async send(workflowId: string, topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
    this.#assertOpen();
    return this.#messaging.send(workflowId, topic, message, options);
  }

  /** The current value of an event that a workflow sets, as `holdfast.getEvent` outside of workflows. */
  async getEvent<Value = unknown>(
    workflowId: string,
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  async getEvent<Value = unknown>(workflowId: string, key: string, options?: GetEventOptions): Promise<Value>;
  async getEvent(workflowId: string, key: string, options: GetEventOptions = {}): Promise<unknown> {
    this.#assertOpen();
    return this.#messaging.getEvent(workflowId, key, options);
  }

  /** A handle for any workflow, wherever it runs. Whether there is one shows when it is asked. */
  handle<Result = unknown>(workflowId: string): WorkflowHandle<Result> {
    return new Handle(this.#handles, checkWorkflowId(workflowId));
  }

  /**
   * Reads a stream that a workflow, or a step of it, writes with `writeStream`; see {@link WorkflowHandle.readStream}.
   *
   * @example
   * for await (const { offset, value } of client.readStream<string>('order-42', 'progress', { from: 10 })) …
   */
  readStream<Value = unknown>(
    workflowId: string,
    key: string,
    options: ReadStreamOptions = {},
  ): AsyncIterable<StreamEntry<Value>> {
    return this.handle(workflowId).readStream<Value>(key, options);
  }

  /** Lets go of everything it opened. What was enqueued goes on. Idempotent. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Whoever waits here is told. */
  #listen(): void {
    this.#store.subscribe({
      onControl: (workflowId) => {
        this.#waiter.check([workflowId]);
        this.#messaging.checkEnds([workflowId]);
      },
      onOutcomes: (workflowIds) => {
        this.#waiter.check(workflowIds);
        this.#messaging.checkEnds(workflowIds);
      },
      onStreams: (workflowIds) => {
        this.#streamWatcher.hint(workflowIds);
      },
      onMessages: (workflowIds) => {
        this.#messaging.check(workflowIds);
      },
      onQueries: () => undefined,
      onWork: () => undefined,
      onSchedules: () => undefined,
      onGap: () => {
        this.#messaging.check(null);
        this.#streamWatcher.hint(null);
        this.#waiter.check(null);
      },
    });
  }

  async #close(): Promise<void> {
    await within(this.#leases.close(), FINAL_RELEASE_MS);
    this.#waiter.close();
    this.#messaging.close();
    this.#streamWatcher.close();
    this.#queueStore.close();
    this.#scheduleStore.close();
    await this.#store.close();
    await this.#adminStore.close();
    await this.#driver.close();
    await this.#stopDatabase();
  }

  #makeSchedules(serializer: ValueSerializer, cancelledError: string): Schedules {
    return new Schedules({
      store: this.#scheduleStore,
      serializer,
      resolve: definitionFor,
      prepare: (definition, args, options, workflowId) =>
        prepareStart(definition, args, options, workflowId, serializer),
      cancelledError,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
      onFired: () => undefined,
    });
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw new HoldfastClosedError('This client is closed: connect another one.');
  }
}

/** @throws WorkflowNotRegisteredError, RegistrationError */
function definitionFor(target: unknown): WorkflowDefinition {
  if (typeof target === 'string') return workflowDefinition(target, () => undefined, {});
  const definition = workflowDefinitionOf(target);
  if (definition === undefined) {
    throw new WorkflowNotRegisteredError(
      'This function is not a workflow. Decorate the method with @Workflow, wrap the function with defineWorkflow, or give the name of a workflow.',
    );
  }
  return definition;
}
