import { randomUUID } from 'node:crypto';
import type { HoldfastOptions } from './holdfast-options.js';
import { onAbort } from './engine/abort-wait.js';
import type { Duration } from './api/duration.js';
import type { Logger } from './api/logger.js';
import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { MetricsSnapshot } from './api/metrics.js';
import type { EnqueueItem, EnqueueOptions, QueueOperations } from './api/queue.js';
import type { AnySchedule, CheckedSchedules, ScheduleOperations } from './api/schedule.js';
import type { ReadStreamOptions, StreamEntry } from './api/stream.js';
import type { WorkflowHandle } from './api/workflow-handle.js';
import type { StartOptions } from './api/workflow-options.js';
import { appVersionOf } from './app-version.js';
import { Admin } from './admin/admin.js';
import type { Driver } from './drivers/driver.js';
import { Catalog } from './engine/catalog.js';
import { startChildHandle } from './engine/durable-calls.js';
import { enqueueChild } from './engine/durable-enqueue.js';
import { Engine } from './engine/engine.js';
import { Handle, type HandleHost } from './engine/handle.js';
import { OutcomeWaiter } from './engine/outcome-waiter.js';
import { durableExecution } from './engine/scope.js';
import { StreamWatcher } from './engine/stream-watcher.js';
import { within } from './engine/timer.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { DeduplicationSweeper } from './fleet/deduplication-sweeper.js';
import { Enqueuer, type EnqueueResult } from './fleet/enqueuer.js';
import type { LeaseOperations } from './api/lease.js';
import type { Leases } from './effects/leases.js';
import { leasesOn } from './effects/leases-on.js';
import { Executor, type ExecutorHealth } from './fleet/executor.js';
import type { QueryDesk } from './fleet/query-desk.js';
import { checkDeclarations, Queues } from './fleet/queues.js';
import { Scheduler } from './fleet/scheduler.js';
import { checkScheduleDeclarations, Schedules } from './fleet/schedules.js';
import { encodeFixedErrors, type FixedErrors } from './fixed-errors.js';
import { assertOneVersion } from './loaded-copies.js';
import { checkOptions, type LaunchSettings } from './launch-options.js';
import { makeSerializer } from './make-serializer.js';
import { Messaging } from './messaging.js';
import type { QueueRecord } from './store/queue-store.js';
import { metricsSnapshot } from './metrics.js';
import { metricsText } from './metrics-text.js';
import { replaceRunning } from './hot-reload.js';
import { openDatabase } from './open-database.js';
import { ShutdownSignals } from './shutdown-signals.js';
import { stderrLogger } from './stderr-logger.js';
import { PostgresAdminStore } from './store/postgres/postgres-admin-store.js';
import { PostgresQueueStore } from './store/postgres/postgres-queue-store.js';
import { PostgresScheduleStore } from './store/postgres/postgres-schedule-store.js';
import { PostgresStore } from './store/postgres/postgres-store.js';
import type { ValueSerializer } from './values/index.js';

/** Milliseconds that writes under way get to be answered, after everything else has ended. */
const FINAL_DRAIN_MS = 2_000;
const OUTCOME_POLL_MS = 1_000;

/**
 * One executor: runs workflows, recovers those of others, and is asked about all. Several can live in one process.
 *
 * @example
 * await using holdfast = await Holdfast.launch({ workflows: [Checkout] });
 * const handle = await holdfast.start(Checkout.placeOrder, { workflowId: 'order-42' }, order);
 * await handle.result();
 */
export class Holdfast {
  /** Cancel, resume, rewind, fork, delete, list and look at workflows. */
  readonly admin: Admin;
  /** Defines, changes, pauses and shows queues. */
  readonly queues: QueueOperations;
  /** Defines, changes, pauses, triggers, backfills and shows schedules. */
  readonly schedules: ScheduleOperations;
  /** Named leases, leader election and fences. */
  readonly leases: LeaseOperations;
  readonly #leases: Leases;
  readonly #driver: Driver;
  readonly #store: PostgresStore;
  readonly #adminStore: PostgresAdminStore;
  readonly #queueStore: PostgresQueueStore;
  readonly #scheduleStore: PostgresScheduleStore;
  readonly #schedules: Schedules;
  readonly #scheduler: Scheduler;
  readonly #enqueuer: Enqueuer;
  readonly #messaging: Messaging;
  readonly #queryDesk: QueryDesk;
  readonly #sweeper: DeduplicationSweeper;
  readonly #engine: Engine;
  readonly #executor: Executor;
  readonly #waiter: OutcomeWaiter;
  readonly #streamWatcher: StreamWatcher;
  readonly #handles: HandleHost;
  readonly #settings: LaunchSettings;
  readonly #signals: ShutdownSignals;
  readonly #stopDatabase: () => Promise<void>;
  #closed: Promise<void> | undefined;

  /**
   * Connects, checks the server, brings the schema up to date, registers this executor, and begins to recover and run.
   *
   * @throws InvalidArgumentError, RegistrationError, InvalidSchemaNameError for what is wrong with the options.
   * @throws LaunchTimeoutError when the database cannot be reached in time.
   * @throws SchemaTooOldError, SchemaTooNewError, SchemaPermissionError for the schema; see docs/errors.md for all.
   */
  static async launch<const Declared extends readonly AnySchedule[]>(
    options: Omit<HoldfastOptions, 'schedules'> & { readonly schedules?: Declared & CheckedSchedules<Declared> },
  ): Promise<Holdfast> {
    assertOneVersion();
    const settings = checkOptions(options);
    // Before anything is opened: a wrong registration needs no database to be found.
    const catalog = new Catalog(options.workflows);
    const appVersion = appVersionOf(options.appVersion, catalog);
    const queues = checkDeclarations(options.queues ?? []);
    checkScheduleDeclarations(options.schedules ?? [], (workflow) => catalog.resolve(workflow));
    return replaceRunning(options.hotReloadKey, () =>
      Holdfast.#open({ options, settings, catalog, appVersion }, queues),
    );
  }

  static async #open(checked: CheckedLaunch, queues: readonly QueueRecord[]): Promise<Holdfast> {
    const { options, settings } = checked;
    const logger = options.logger ?? stderrLogger;
    const serializer = makeSerializer(options);
    const database = await openDatabase(options, settings, logger);
    try {
      const holdfast = new Holdfast(
        { ...checked, logger, serializer, driver: database.driver, stopDatabase: database.stop },
        await encodeFixedErrors(serializer),
      );
      if (queues.length > 0) await holdfast.#queueStore.define(queues, { isDeclaration: true });
      await holdfast.#schedules.declare(options.schedules ?? []);
      await holdfast.#executor.register();
      holdfast.#run();
      return holdfast;
    } catch (error) {
      await database.driver.close();
      await database.stop();
      throw error;
    }
  }

  private constructor(parts: Parts, errors: FixedErrors) {
    const { options, settings, catalog, logger, serializer, driver } = parts;
    const { schema } = settings;
    this.#settings = settings;
    this.#driver = driver;
    this.#stopDatabase = parts.stopDatabase;
    this.#store = new PostgresStore({ driver, schema, notifications: options.notifications ?? true });
    const waitPollMs = Math.min(OUTCOME_POLL_MS, settings.pollMs);
    this.#waiter = new OutcomeWaiter(this.#store, waitPollMs);
    this.#messaging = this.#openMessaging(parts, waitPollMs);
    this.#streamWatcher = new StreamWatcher(this.#store.streams, waitPollMs);
    this.#executor = new Executor({
      store: this.#store,
      logger,
      executorId: options.executorId ?? randomUUID(),
      appVersion: parts.appVersion,
      leaseMs: settings.leaseMs,
      pollMs: settings.pollMs,
      maxConcurrent: settings.maxConcurrent,
      suspendAfterMs: settings.suspendAfterMs,
      deadLetterError: errors.deadLetter,
      stuckError: errors.stuck,
      stalledError: errors.stalled,
      onSuperseded: () => void this.close({ drainMs: 0 }),
    });
    this.#engine = new Engine({
      store: this.#store,
      serializer,
      logger,
      catalog,
      executor: this.#executor,
      waiter: this.#waiter,
      arrivals: this.#messaging.arrivals,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
    });
    this.#adminStore = new PostgresAdminStore({ driver, schema });
    this.admin = new Admin({
      store: this.#adminStore,
      cancelledError: errors.cancelled,
      decode: (text) => serializer.decode(text),
    });
    this.#queueStore = new PostgresQueueStore({ driver, schema });
    this.queues = new Queues(this.#queueStore);
    this.#enqueuer = this.#makeEnqueuer(serializer);
    this.#leases = leasesOn({ driver, schema, logger, heldBy: () => this.executorId });
    this.leases = this.#leases;
    this.#queryDesk = this.#messaging.deskOf(this.#engine, this.#executor, logger);
    this.#sweeper = new DeduplicationSweeper(this.#queueStore, logger);
    this.#scheduleStore = new PostgresScheduleStore({ driver, schema });
    this.schedules = this.#schedules = this.#makeSchedules(parts, errors);
    this.#scheduler = this.#makeScheduler(parts, errors);
    this.#handles = this.#handleHost(serializer);
    this.#signals = new ShutdownSignals({ signals: options.shutdownOn ?? [], close: () => this.close(), logger });
  }

  /** The ID under which this process is known to the others. */
  get executorId(): string {
    return this.#executor.identity.executorId;
  }

  /** The version of the application that this process runs, as given or made of the source. */
  get appVersion(): string {
    return this.#executor.appVersion;
  }

  /** Whether this executor is running, fenced (its lease may have lapsed), superseded or stopped. */
  health(): ExecutorHealth {
    return this.#executor.health;
  }

  /** What this process has counted since launch, and how it is now. Asks nobody. */
  metrics(): MetricsSnapshot {
    return metricsSnapshot(this.#engine.counters, this.#executor, this.#store.counters);
  }

  /**
   * The same as text for Prometheus (`text/plain; version=0.0.4`), and what the database knows of the whole fleet.
   *
   * @param options `fleet: false` leaves the fleet out, and so the query.
   */
  async metricsText({ fleet = true }: { readonly fleet?: boolean } = {}): Promise<string> {
    return metricsText(this.metrics(), this.executorId, fleet ? await this.admin.overview() : undefined);
  }

  /**
   * Starts a workflow, or attaches to the one that has the given ID. When it returns, the workflow is on record and will reach
   * an outcome as long as some executor can run it. Inside a workflow, it starts a child, together with the checkpoint.
   *
   * @param workflow A `@Workflow` method or a function made by `defineWorkflow`.
   * @throws WorkflowNotRegisteredError, InvalidArgumentError, SchemaViolationError, ValueNotSerializableError,
   *   PayloadTooLargeError, before anything is written.
   * @throws WorkflowIdConflictError when the ID belongs to a workflow of another name.
   * @throws HoldfastClosedError
   */
  async start<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: StartOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    const definition = this.#engine.catalog.definitionOf(workflow);
    const parent = durableExecution();
    const handle =
      parent === undefined
        ? await this.#engine.start(definition, options, args)
        : await startChildHandle(parent, definition, args, options);
    return handle as WorkflowHandle<Result>;
  }

  /**
   * Puts a workflow into a queue, or attaches to the one that has the given ID. When it returns, the workflow is on record and
   * will be started when the queue's limits let it through. Any executor that knows its name may start it, on any app version;
   * from then on it stays on that version. Inside a workflow, the child is recorded together with the checkpoint.
   *
   * @throws QueueNotFoundError
   * @throws WorkflowDeduplicatedError with the ID of the workflow that holds the deduplication ID.
   * @throws what `start` throws.
   */
  async enqueue<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: EnqueueOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    const definition = this.#engine.catalog.definitionOf(workflow);
    const parent = durableExecution();
    if (parent !== undefined) {
      return (await enqueueChild(parent, definition, args, options)) as WorkflowHandle<Result>;
    }
    this.#engine.assertAccepting();
    const handle = await this.#enqueuer.enqueue(definition, options, args);
    if (options.transaction === undefined) this.#executor.wake();
    return handle as WorkflowHandle<Result>;
  }

  /**
   * Enqueues many workflows with few statements, in the order of the list; at most 100,000. What `options` say holds for all of
   * them, and what an item says for that one. Each has its own result: one that is refused does not keep the others back.
   * Inside a workflow, it is one durable call an item.
   */
  async enqueueMany<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: Omit<EnqueueOptions, 'workflowId'>,
    items: readonly EnqueueItem<Arguments>[],
  ): Promise<readonly EnqueueResult<Result>[]> {
    const definition = this.#engine.catalog.definitionOf(workflow);
    const parent = durableExecution();
    if (parent !== undefined) {
      const results = items.map(async ({ args, ...own }): Promise<EnqueueResult<unknown>> => {
        try {
          return { ok: true, handle: await enqueueChild(parent, definition, args, { ...options, ...own }) };
        } catch (error) {
          parent.assertRunning();
          return { ok: false, error: error instanceof Error ? error : new Error(String(error)) };
        }
      });
      return (await Promise.all(results)) as readonly EnqueueResult<Result>[];
    }
    this.#engine.assertAccepting();
    const results = await this.#enqueuer.enqueueMany(definition, options, items);
    if (options.transaction === undefined) this.#executor.wake();
    return results as readonly EnqueueResult<Result>[];
  }

  /**
   * Sends a message to a workflow, wherever it runs or waits; it gets it by `receive`. When it returns, the message is on
   * record (with `transaction`: once that commits). Messages of one sender are received in the order of its calls. Inside a
   * workflow, the message is sent together with the checkpoint.
   *
   * @param topic 1 to 255 bytes.
   * @throws WorkflowNotFoundError when there is no such workflow, ReceiverEndedError when it has ended.
   * @throws InvalidArgumentError, ValueNotSerializableError, PayloadTooLargeError, before anything is written.
   */
  async send(workflowId: string, topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
    return this.#messaging.send(workflowId, topic, message, options);
  }

  /**
   * The current value of an event that a workflow sets; waits until it is set for the first time. Inside a workflow, what was
   * read is recorded.
   *
   * @returns The value; `undefined` when `timeout` has passed and it is not set.
   * @throws WorkflowNotFoundError when there is no such workflow.
   * @throws EventNotSetError when the workflow has ended without setting it.
   * @throws InvalidArgumentError, HoldfastClosedError
   */
  async getEvent<Value = unknown>(
    workflowId: string,
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  async getEvent<Value = unknown>(workflowId: string, key: string, options?: GetEventOptions): Promise<Value>;
  async getEvent(workflowId: string, key: string, options: GetEventOptions = {}): Promise<unknown> {
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
   * for await (const { offset, value } of holdfast.readStream<string>('order-42', 'progress', { from: 10 })) …
   */
  readStream<Value = unknown>(
    workflowId: string,
    key: string,
    options: ReadStreamOptions = {},
  ): AsyncIterable<StreamEntry<Value>> {
    return this.handle(workflowId).readStream<Value>(key, options);
  }

  /**
   * Stops: claims nothing more, lets running workflows go on for a while, gives back what is left, so that another executor
   * takes it at once, and lets go of everything it opened. Idempotent. A shutdown is not an attempt.
   */
  close(options: { readonly drainMs?: number } = {}): Promise<void> {
    return (this.#closed ??= this.#close(options.drainMs ?? this.#settings.shutdownTimeoutMs));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #run(): void {
    this.#store.subscribe({
      onControl: (workflowId) => void this.#recheck(workflowId),
      onOutcomes: (workflowIds) => {
        this.#waiter.check(workflowIds);
        this.#messaging.checkEnds(workflowIds);
      },
      onMessages: (workflowIds) => {
        this.#messaging.check(workflowIds);
      },
      onQueries: (workflowIds) => {
        this.#queryDesk.wake(workflowIds);
      },
      onStreams: (workflowIds) => {
        this.#streamWatcher.hint(workflowIds);
      },
      onWork: () => {
        this.#executor.wake();
      },
      onSchedules: () => {
        this.#scheduler.wake();
      },
      onGap: () => {
        this.#messaging.check(null);
        this.#queryDesk.wake(null);
        this.#waiter.check(null);
        this.#streamWatcher.hint(null);
        this.#executor.wake();
        this.#scheduler.wake();
      },
    });
    this.#executor.run(this.#engine);
    this.#sweeper.start();
    this.#scheduler.start();
    this.#queryDesk.start();
    this.#signals.start();
  }

  /** A control operation may have taken a workflow away that runs here; or it has an outcome that somebody waits for. */
  async #recheck(workflowId: string): Promise<void> {
    this.#waiter.check([workflowId]);
    this.#messaging.checkEnds([workflowId]);
    const execution = this.#engine.runningExecution(workflowId);
    if (execution === undefined) return;
    try {
      if (!(await this.#store.verifyOwnership(execution.ownership))) execution.lose();
    } catch {
      // Closed meanwhile, or refused: the next write or heartbeat finds out.
    }
  }

  /** Each part has its time, since a database that cannot be reached must not keep a process from ending. */
  async #close(drainMs: number): Promise<void> {
    this.#engine.stopAccepting();
    await within(this.#executor.stopClaiming(drainMs), FINAL_DRAIN_MS);
    await within(Promise.all([this.#sweeper.stop(), this.#scheduler.stop()]), FINAL_DRAIN_MS);
    await within(this.#engine.idle(), drainMs);
    await within(this.#engine.giveBackAll(), FINAL_DRAIN_MS);
    await within(Promise.all([this.#leases.close(), this.#queryDesk.stop()]), FINAL_DRAIN_MS);
    await within(this.#executor.deregister(), FINAL_DRAIN_MS);
    this.#streamWatcher.close();
    await this.#store.close({ drainMs: FINAL_DRAIN_MS });
    this.#waiter.close();
    this.#messaging.close();
    this.#queueStore.close();
    this.#scheduleStore.close();
    await this.#adminStore.close();
    await this.#driver.close();
    await this.#stopDatabase();
    this.#signals.stop();
  }

  #makeEnqueuer(serializer: ValueSerializer): Enqueuer {
    return new Enqueuer({
      store: this.#queueStore,
      prepare: (definition, args, options, workflowId) => this.#engine.prepare(definition, args, options, workflowId),
      serializer,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
    });
  }

  #makeScheduler({ logger, settings }: Parts, errors: FixedErrors): Scheduler {
    return new Scheduler({
      store: this.#scheduleStore,
      logger,
      pollMs: settings.pollMs,
      cancelledError: errors.cancelled,
      onFired: () => {
        this.#executor.wake();
      },
    });
  }

  #makeSchedules({ serializer, catalog }: Parts, errors: FixedErrors): Schedules {
    return new Schedules({
      store: this.#scheduleStore,
      serializer,
      resolve: (workflow) => catalog.resolve(workflow),
      prepare: (definition, args, options, workflowId) => this.#engine.prepare(definition, args, options, workflowId),
      cancelledError: errors.cancelled,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
      onFired: () => {
        this.#executor.wake();
      },
    });
  }

  #openMessaging({ driver, settings, serializer }: Parts, pollMs: number): Messaging {
    return new Messaging({
      driver,
      schema: settings.schema,
      store: this.#store,
      serializer,
      pollMs,
      engine: () => this.#engine,
    });
  }

  #handleHost(serializer: ValueSerializer): HandleHost {
    return {
      serializer,
      streams: this.#store.streams,
      streamWatcher: this.#streamWatcher,
      waitForResult: (workflowId, signal) =>
        this.#waiter.wait(workflowId, {
          runsHere: this.#engine.runningExecution(workflowId) !== undefined,
          ...(signal === undefined ? {} : { onGone: onAbort(signal) }),
        }),
      statusOf: async (workflowId) => (await this.admin.get(workflowId)).status,
      cancel: async (workflowId, reason) => {
        await this.admin.cancel(workflowId, reason === undefined ? {} : { reason });
      },
      messaging: this.#messaging,
    };
  }
}

/** What a launch knows before it opens anything. */
interface CheckedLaunch {
  readonly options: HoldfastOptions;
  readonly settings: LaunchSettings;
  readonly catalog: Catalog;
  readonly appVersion: string;
}

interface Parts extends CheckedLaunch {
  readonly logger: Logger;
  readonly serializer: ValueSerializer;
  readonly driver: Driver;
  readonly stopDatabase: () => Promise<void>;
}
