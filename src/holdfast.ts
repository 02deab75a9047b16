import type { Admin } from './admin/admin.js';
import type { Duration } from './api/duration.js';
import type { EnqueueResult } from './api/enqueue-result.js';
import type { LeaseOperations } from './api/lease.js';
import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { MetricsSnapshot } from './api/metrics.js';
import type { OutboxOperations } from './api/outbox.js';
import type { EnqueueItem, EnqueueOptions, QueueOperations } from './api/queue.js';
import type { AnySchedule, CheckedSchedules, ScheduleOperations } from './api/schedule.js';
import type { ReadStreamOptions, StreamEntry } from './api/stream.js';
import type { WorkflowHandle } from './api/workflow-handle.js';
import type { StartOptions } from './api/workflow-options.js';
import { appVersionOf } from './app-version.js';
import { Catalog } from './engine/catalog.js';
import { startChildHandle } from './engine/durable-calls.js';
import { enqueueChild, enqueueChildren } from './engine/durable-enqueue.js';
import { checkIsOptions, checkKnownOptions } from './engine/known-options.js';
import { durableExecution } from './engine/scope.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { ExecutorParts } from './executor-parts.js';
import type { ExecutorHealth } from './fleet/executor.js';
import { checkDeclarations } from './fleet/queues.js';
import { checkScheduleDeclarations } from './fleet/schedules.js';
import type { HoldfastOptions } from './holdfast-options.js';
import { replaceRunning } from './hot-reload.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import { checkOptions } from './launch-options.js';
import { assertOneVersion } from './loaded-copies.js';
import { metricsText } from './metrics-text.js';
import { metricsSnapshot } from './metrics.js';
import { quietly } from './engine/quietly.js';

const CLOSE_OPTIONS: ReadonlySet<string> = new Set(['drainMs']);
const METRICS_OPTIONS: ReadonlySet<string> = new Set(['fleet']);

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
  /** Adds events for the outside world. */
  readonly outbox: OutboxOperations;
  readonly #parts: ExecutorParts;

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
    catalog.assertDataSources(options.dataSources ?? []);
    const appVersion = appVersionOf(options.appVersion, catalog);
    const queues = checkDeclarations(options.queues ?? []);
    checkScheduleDeclarations(options.schedules ?? [], (workflow) => catalog.resolve(workflow));
    return replaceRunning(
      options.hotReloadKey,
      async () => new Holdfast(await ExecutorParts.start({ options, settings, catalog, appVersion, queues })),
    );
  }

  private constructor(parts: ExecutorParts) {
    this.#parts = parts;
    const { admin, queues, schedules, leases, outbox } = parts.shared;
    this.admin = admin;
    this.queues = queues;
    this.schedules = schedules;
    this.leases = leases;
    this.outbox = outbox;
  }

  /** The ID under which this process is known to the others. */
  get executorId(): string {
    return this.#parts.executor.identity.executorId;
  }

  /** The version of the application that this process runs, as given or made of the source. */
  get appVersion(): string {
    return this.#parts.executor.appVersion;
  }

  /** Whether this executor is running, fenced (its lease may have lapsed), superseded or stopped. */
  health(): ExecutorHealth {
    return this.#parts.executor.health;
  }

  /** What this process has counted since launch, and how it is now. Asks nobody. */
  metrics(): MetricsSnapshot {
    const { engine, executor, relay, shared } = this.#parts;
    return metricsSnapshot(engine.counters, executor, relay.counters, shared.store.counters);
  }

  /**
   * The same as text for Prometheus (`text/plain; version=0.0.4`), and what the database knows of the whole fleet.
   *
   * @param options `fleet: false` leaves the fleet out, and so the query.
   * @throws ConnectionUnavailableError and the like, when the fleet is asked for and the database does not answer for half a minute.
   */
  async metricsText(options: { readonly fleet?: boolean } = {}): Promise<string> {
    checkKnownOptions(options, METRICS_OPTIONS, 'metricsText');
    const { fleet = true } = options;
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
  start<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: StartOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    return quietly(async () => {
      checkIsOptions(options, 'start');
      const definition = this.#parts.engine.catalog.definitionOf(workflow);
      const parent = durableExecution();
      const handle =
        parent === undefined
          ? await this.#parts.engine.start(definition, options, args)
          : await startChildHandle(parent, definition, args, options);
      return handle as WorkflowHandle<Result>;
    });
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
  enqueue<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: EnqueueOptions,
    ...args: Arguments
  ): Promise<WorkflowHandle<Result>> {
    return quietly(async () => {
      checkIsOptions(options, 'enqueue');
      const definition = this.#parts.engine.catalog.definitionOf(workflow);
      const parent = durableExecution();
      if (parent !== undefined) {
        return (await enqueueChild(parent, definition, args, options)) as WorkflowHandle<Result>;
      }
      this.#parts.engine.assertAccepting();
      const handle = await this.#parts.shared.enqueuer.enqueue(definition, options, args);
      if (options.transaction === undefined) this.#parts.executor.wake();
      return handle as WorkflowHandle<Result>;
    });
  }

  /**
   * Enqueues many workflows with few statements, in the order of the list; at most 100,000. What `options` say holds for all of
   * them, and what an item says for that one. Each has its own result: one that is refused does not keep the others back.
   * Inside a workflow, it is one durable call an item.
   */
  enqueueMany<Arguments extends unknown[], Result>(
    workflow: (...args: Arguments) => Promise<Result>,
    options: Omit<EnqueueOptions, 'workflowId'>,
    items: readonly EnqueueItem<Arguments>[],
  ): Promise<readonly EnqueueResult<Result>[]> {
    return quietly(async () => {
      checkIsOptions(options, 'enqueueMany');
      const definition = this.#parts.engine.catalog.definitionOf(workflow);
      const parent = durableExecution();
      if (parent !== undefined) {
        return (await enqueueChildren(parent, definition, options, items)) as readonly EnqueueResult<Result>[];
      }
      this.#parts.engine.assertAccepting();
      const results = await this.#parts.shared.enqueuer.enqueueMany(definition, options, items);
      if (options.transaction === undefined) this.#parts.executor.wake();
      return results as readonly EnqueueResult<Result>[];
    });
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
  send(workflowId: string, topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
    return quietly(async () => {
      return this.#parts.shared.messaging.send(workflowId, topic, message, options);
    });
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
  getEvent<Value = unknown>(
    workflowId: string,
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  getEvent<Value = unknown>(workflowId: string, key: string, options?: GetEventOptions): Promise<Value>;
  getEvent(workflowId: string, key: string, options: GetEventOptions = {}): Promise<unknown> {
    return quietly(async () => {
      return this.#parts.shared.messaging.getEvent(workflowId, key, options);
    });
  }

  /** A handle for any workflow, wherever it runs. Whether there is one shows when it is asked. */
  handle<Result = unknown>(workflowId: string): WorkflowHandle<Result> {
    return this.#parts.shared.handleOf(checkWorkflowId(workflowId));
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
   *
   * @param options `drainMs`: how long running workflows may go on, in milliseconds. Default: `shutdownTimeout` of `launch`.
   * @throws InvalidArgumentError, and is not closed then.
   */
  async close(options: { readonly drainMs?: number } = {}): Promise<void> {
    checkKnownOptions(options, CLOSE_OPTIONS, 'close');
    const { drainMs = 0 } = options;
    // Not less than 0 is what neither a text nor NaN is, by which nothing would be waited for.
    if (typeof drainMs !== 'number' || !(drainMs >= 0)) {
      throw new InvalidArgumentError('drainMs must be a number of milliseconds, 0 or more.');
    }
    await this.#parts.close(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
