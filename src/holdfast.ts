import { randomUUID } from 'node:crypto';
import type { HoldfastOptions } from './holdfast-options.js';
import type { Logger } from './api/logger.js';
import type { WorkflowHandle } from './api/workflow-handle.js';
import type { StartOptions } from './api/workflow-options.js';
import { Admin } from './admin/admin.js';
import type { Driver } from './drivers/driver.js';
import { Catalog } from './engine/catalog.js';
import { startChildHandle } from './engine/durable-calls.js';
import { Engine } from './engine/engine.js';
import { Handle, type HandleHost } from './engine/handle.js';
import { OutcomeWaiter } from './engine/outcome-waiter.js';
import { durableExecution } from './engine/scope.js';
import { within } from './engine/timer.js';
import { checkWorkflowId } from './engine/workflow-id.js';
import { Executor, type ExecutorHealth } from './fleet/executor.js';
import { assertOneVersion } from './loaded-copies.js';
import { checkOptions, type LaunchSettings } from './launch-options.js';
import { BUILT_IN_ERRORS } from './built-in-errors.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import { MaxAttemptsExceededError, WorkflowCancelledError, WorkflowStuckError } from './errors/workflow-errors.js';
import { replaceRunning } from './hot-reload.js';
import { openDatabase } from './open-database.js';
import { stderrLogger } from './stderr-logger.js';
import { PostgresAdminStore } from './store/postgres/postgres-admin-store.js';
import { PostgresStore } from './store/postgres/postgres-store.js';
import { ErrorRegistry, ValueSerializer } from './values/index.js';

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
  readonly #driver: Driver;
  readonly #store: PostgresStore;
  readonly #adminStore: PostgresAdminStore;
  readonly #engine: Engine;
  readonly #executor: Executor;
  readonly #waiter: OutcomeWaiter;
  readonly #handles: HandleHost;
  readonly #settings: LaunchSettings;
  readonly #stopDatabase: () => Promise<void>;
  #closed: Promise<void> | undefined;

  /**
   * Connects, checks the server, brings the schema up to date, registers this executor, and begins to recover and run.
   *
   * @throws InvalidArgumentError, RegistrationError, InvalidSchemaNameError for what is wrong with the options.
   * @throws LaunchTimeoutError when the database cannot be reached in time.
   * @throws SchemaTooOldError, SchemaTooNewError, SchemaPermissionError for the schema; see docs/errors.md for all.
   */
  static async launch(options: HoldfastOptions): Promise<Holdfast> {
    assertOneVersion();
    const settings = checkOptions(options);
    // Before anything is opened: a wrong registration needs no database to be found.
    const catalog = new Catalog(options.workflows);
    return replaceRunning(options.hotReloadKey, () => Holdfast.#open(options, settings, catalog));
  }

  static async #open(options: HoldfastOptions, settings: LaunchSettings, catalog: Catalog): Promise<Holdfast> {
    const logger = options.logger ?? stderrLogger;
    const serializer = makeSerializer(options);
    const database = await openDatabase(options, settings, logger);
    try {
      const holdfast = new Holdfast(
        { options, settings, catalog, logger, serializer, driver: database.driver, stopDatabase: database.stop },
        await encodeFixedErrors(serializer),
      );
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
    this.#waiter = new OutcomeWaiter(this.#store, Math.min(OUTCOME_POLL_MS, settings.pollMs));
    this.#executor = new Executor({
      store: this.#store,
      logger,
      executorId: options.executorId ?? randomUUID(),
      appVersion: options.appVersion ?? '',
      leaseMs: settings.leaseMs,
      pollMs: settings.pollMs,
      maxConcurrent: settings.maxConcurrent,
      deadLetterError: errors.deadLetter,
      stuckError: errors.stuck,
      onSuperseded: () => void this.close({ drainMs: 0 }),
    });
    this.#engine = new Engine({
      store: this.#store,
      serializer,
      logger,
      catalog,
      executor: this.#executor,
      waiter: this.#waiter,
      handleOf: (workflowId) => new Handle(this.#handles, workflowId),
    });
    this.#adminStore = new PostgresAdminStore({ driver, schema });
    this.admin = new Admin({
      store: this.#adminStore,
      cancelledError: errors.cancelled,
      decode: (text) => serializer.decode(text),
    });
    this.#handles = this.#handleHost(serializer);
  }

  /** The ID under which this process is known to the others. */
  get executorId(): string {
    return this.#executor.identity.executorId;
  }

  /** Whether this executor is running, fenced (its lease may have lapsed), superseded or stopped. */
  health(): ExecutorHealth {
    return this.#executor.health;
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

  /** A handle for any workflow, wherever it runs. Whether there is one shows when it is asked. */
  handle<Result = unknown>(workflowId: string): WorkflowHandle<Result> {
    return new Handle(this.#handles, checkWorkflowId(workflowId));
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
      },
      onWork: () => {
        this.#executor.wake();
      },
      onGap: () => {
        this.#waiter.check(null);
        this.#executor.wake();
      },
    });
    this.#executor.run(this.#engine);
  }

  /** A control operation may have taken a workflow away that runs here; or it has an outcome that somebody waits for. */
  async #recheck(workflowId: string): Promise<void> {
    this.#waiter.check([workflowId]);
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
    await within(this.#executor.stopClaiming(), FINAL_DRAIN_MS);
    await within(this.#engine.idle(), drainMs);
    await within(this.#engine.giveBackAll(), FINAL_DRAIN_MS);
    await within(this.#executor.deregister(), FINAL_DRAIN_MS);
    await this.#store.close({ drainMs: FINAL_DRAIN_MS });
    this.#waiter.close();
    await this.#adminStore.close();
    await this.#driver.close();
    await this.#stopDatabase();
  }

  #handleHost(serializer: ValueSerializer): HandleHost {
    return {
      serializer,
      waitForResult: (workflowId, signal) =>
        this.#waiter.wait(workflowId, {
          runsHere: this.#engine.runningExecution(workflowId) !== undefined,
          ...(signal === undefined ? {} : { onGone: onAbort(signal) }),
        }),
      statusOf: async (workflowId) => (await this.admin.get(workflowId)).status,
      cancel: async (workflowId, reason) => {
        await this.admin.cancel(workflowId, reason === undefined ? {} : { reason });
      },
    };
  }
}

function makeSerializer({ codecs = [], errors = [], maxValueBytes }: HoldfastOptions): ValueSerializer {
  try {
    return new ValueSerializer({
      codecs,
      errors: new ErrorRegistry([...BUILT_IN_ERRORS, ...errors]),
      ...(maxValueBytes === undefined ? {} : { maxBytes: maxValueBytes }),
    });
  } catch (cause) {
    throw new InvalidArgumentError(
      'Two "codecs" or two "errors" have one name, or one of the "errors" is no class of errors.',
      {
        cause,
      },
    );
  }
}

interface Parts {
  readonly options: HoldfastOptions;
  readonly settings: LaunchSettings;
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly serializer: ValueSerializer;
  readonly driver: Driver;
  readonly stopDatabase: () => Promise<void>;
}

/** Errors that the database records by itself, encoded beforehand. */
interface FixedErrors {
  readonly deadLetter: string;
  readonly stuck: string;
  readonly cancelled: string;
}

async function encodeFixedErrors(serializer: ValueSerializer): Promise<FixedErrors> {
  return {
    deadLetter: await serializer.encodeError(
      withoutStack(
        new MaxAttemptsExceededError(
          'The workflow was claimed as often as it may be and never ended. Find out why, then resume it for a fresh budget.',
        ),
      ),
    ),
    stuck: await serializer.encodeError(
      withoutStack(
        new WorkflowStuckError('Other writers kept changing the workflow: its executions made no progress.'),
      ),
    ),
    cancelled: await serializer.encodeError(withoutStack(new WorkflowCancelledError('The workflow was cancelled.'))),
  };
}

/** Where it was made says nothing about where it happened. */
function withoutStack(error: Error): Error {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

function onAbort(signal: AbortSignal): (callback: (reason: Error) => void) => () => void {
  return (callback) => {
    const listener = (): void => {
      callback(signal.reason instanceof Error ? signal.reason : new Error('Aborted.', { cause: signal.reason }));
    };
    if (signal.aborted) queueMicrotask(listener);
    signal.addEventListener('abort', listener, { once: true });
    return () => {
      signal.removeEventListener('abort', listener);
    };
  };
}
