import { hostname } from 'node:os';
import type { Admin } from './admin/admin.js';
import type { Duration } from './api/duration.js';
import type { EnqueueResult } from './api/enqueue-result.js';
import type { LeaseOperations } from './api/lease.js';
import type { GetEventOptions, SendOptions } from './api/messages.js';
import type { OutboxOperations } from './api/outbox.js';
import type { EnqueueItem, EnqueueOptions, QueueOperations } from './api/queue.js';
import type { ScheduleOperations } from './api/schedule.js';
import type { ReadStreamOptions, StreamEntry } from './api/stream.js';
import type { WorkflowHandle } from './api/workflow-handle.js';
import { checkClientOptions, type ClientOptions } from './client-options.js';
import { workflowDefinition, workflowDefinitionOf, type WorkflowDefinition } from './engine/definitions.js';
import { checkIsOptions } from './engine/known-options.js';
import { prepareStart } from './engine/prepare-start.js';
import { within } from './engine/timer.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { HoldfastClosedError, WorkflowNotRegisteredError } from './errors/usage-errors.js';
import { encodeFixedErrors } from './fixed-errors.js';
import { assertOneVersion } from './loaded-copies.js';
import { makeSerializer } from './make-serializer.js';
import { LaunchDeadline } from './launch-deadline.js';
import { openDatabase } from './open-database.js';
import { systemRuntime } from './runtime/system-runtime.js';
import { SharedParts } from './shared-parts.js';
import { guardedLogger } from './guarded-logger.js';
import { quietly } from './engine/quietly.js';

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
  /** Adds events for the outside world; executors deliver them. */
  readonly outbox: OutboxOperations;
  readonly #parts: SharedParts;
  #closed: Promise<void> | undefined;

  /**
   * Connects and checks server and schema.
   * @throws InvalidArgumentError, LaunchTimeoutError, SchemaTooOldError, and what else `launch` finds; see docs/errors.md.
   */
  static async connect(options: ClientOptions = {}): Promise<HoldfastClient> {
    assertOneVersion();
    const settings = checkClientOptions(options);
    const serializer = makeSerializer(options);
    const deadline = new LaunchDeadline(settings.launchTimeoutMs, options.signal);
    const errors = await deadline.unlessAborted(encodeFixedErrors(serializer));
    const logger = guardedLogger(options.logger);
    const database = await openDatabase({ ...options, migrate: options.migrate ?? false }, settings, deadline, logger);
    const parts = new SharedParts({
      runtime: systemRuntime,
      ...settings,
      database,
      serializer,
      logger,
      errors,
      notifications: options.notifications ?? true,
      resolve: definitionFor,
      prepare: (definition, args, start, workflowId) => prepareStart(definition, args, start, workflowId, serializer),
      engine: undefined,
      heldBy: () => `a client, process ${String(process.pid)} on ${hostname()}`,
      onFired: () => undefined,
    });
    return new HoldfastClient(parts);
  }

  private constructor(parts: SharedParts) {
    this.#parts = parts;
    ({
      admin: this.admin,
      queues: this.queues,
      schedules: this.schedules,
      leases: this.leases,
      outbox: this.outbox,
    } = parts);
    parts.store.subscribe({
      ...parts.hints(),
      onQueries: () => undefined,
      onOutbox: () => undefined,
      onWork: () => undefined,
      onSchedules: () => undefined,
    });
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
    checkIsOptions(options, 'enqueue');
    return (await this.#parts.enqueuer.enqueue(definitionFor(workflow), options, args)) as WorkflowHandle<Result>;
  }

  /** Enqueues many workflows with few statements, in the order of the list; as `holdfast.enqueueMany`. */
  async enqueueMany<Arguments extends unknown[], Result>(
    workflow: Target<Arguments, Result>,
    options: Omit<EnqueueOptions, 'workflowId'>,
    items: readonly EnqueueItem<Arguments>[],
  ): Promise<readonly EnqueueResult<Result>[]> {
    this.#assertOpen();
    checkIsOptions(options, 'enqueueMany');
    const results = await this.#parts.enqueuer.enqueueMany(definitionFor(workflow), options, items);
    return results as readonly EnqueueResult<Result>[];
  }

  /** Sends a message to a workflow, as `holdfast.send` outside of workflows. */
  send(workflowId: string, topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
    return quietly(async () => {
      this.#assertOpen();
      return this.#parts.messaging.send(workflowId, topic, message, options);
    });
  }

  /** The current value of an event that a workflow sets, as `holdfast.getEvent` outside of workflows. */
  getEvent<Value = unknown>(
    workflowId: string,
    key: string,
    options: GetEventOptions & { readonly timeout: Duration },
  ): Promise<Value | undefined>;
  getEvent<Value = unknown>(workflowId: string, key: string, options?: GetEventOptions): Promise<Value>;
  getEvent(workflowId: string, key: string, options: GetEventOptions = {}): Promise<unknown> {
    return quietly(async () => {
      this.#assertOpen();
      return this.#parts.messaging.getEvent(workflowId, key, options);
    });
  }

  /** A handle for any workflow, wherever it runs. Whether there is one shows when it is asked. */
  handle<Result = unknown>(workflowId: string): WorkflowHandle<Result> {
    return this.#parts.handleOf(checkWorkflowId(workflowId));
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

  async #close(): Promise<void> {
    await within(systemRuntime, this.#parts.leases.close(), FINAL_RELEASE_MS);
    this.#parts.stopWaiting();
    await this.#parts.close({ drainMs: 0 });
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
