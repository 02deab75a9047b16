import type { Logger } from './api/logger.js';
import type { Catalog } from './engine/catalog.js';
import { Relay } from './effects/relay.js';
import { Engine } from './engine/engine.js';
import { within } from './engine/timer.js';
import { encodeFixedErrors, type FixedErrors } from './fixed-errors.js';
import { DeduplicationSweeper } from './fleet/deduplication-sweeper.js';
import { Executor } from './fleet/executor.js';
import type { QueryDesk } from './fleet/query-desk.js';
import { closeDataSources, openDataSources, type OpenDataSource } from './store/postgres/transactions/data-sources.js';
import { Scheduler } from './fleet/scheduler.js';
import type { HoldfastOptions } from './holdfast-options.js';
import { LaunchDeadline, type LaunchQuestion } from './launch-deadline.js';
import type { LaunchSettings } from './launch-options.js';
import { makeSerializer } from './make-serializer.js';
import { openDatabase, type OpenDatabase } from './open-database.js';
import { systemRuntime } from './runtime/system-runtime.js';
import { SharedParts } from './shared-parts.js';
import { ShutdownSignals } from './shutdown-signals.js';
import { guardedLogger } from './guarded-logger.js';
import type { QueueRecord } from './store/queue-store.js';
import type { StoreHints } from './store/store.js';
import type { ValueSerializer } from './values/index.js';

/** Milliseconds that writes under way get to be answered, after everything else has ended. */
const FINAL_DRAIN_MS = 2_000;

/** Part of the lease after which a transaction that is idle is ended: before anybody else may want to take over. */
const IDLE_TIMEOUT_PER_LEASE = 2 / 3;

/** What a launch knows before it opens anything. */
export interface CheckedLaunch {
  readonly options: HoldfastOptions;
  readonly settings: LaunchSettings;
  readonly catalog: Catalog;
  readonly appVersion: string;
  readonly queues: readonly QueueRecord[];
}

interface Opened extends CheckedLaunch {
  readonly logger: Logger;
  readonly serializer: ValueSerializer;
  readonly database: OpenDatabase;
  readonly dataSources: ReadonlyMap<object, OpenDataSource>;
  readonly errors: FixedErrors;
}

/** All parts of a process that runs workflows, and the order in which they begin and end. */
export class ExecutorParts {
  readonly shared: SharedParts;
  readonly engine: Engine;
  readonly executor: Executor;
  readonly relay: Relay;
  readonly #scheduler: Scheduler;
  readonly #queryDesk: QueryDesk;
  readonly #sweeper: DeduplicationSweeper;
  readonly #signals: ShutdownSignals;
  readonly #shutdownTimeoutMs: number;
  readonly #dataSources: ReadonlyMap<object, OpenDataSource>;
  #closed: Promise<void> | undefined;

  /** Opens the database, puts the parts together and begins to run. What was opened is closed when that fails. */
  static async start(launch: CheckedLaunch): Promise<ExecutorParts> {
    const { options, settings } = launch;
    const logger = guardedLogger(options.logger);
    const serializer = makeSerializer(options);
    const deadline = new LaunchDeadline(settings.launchTimeoutMs, options.signal);
    const database = await openDatabase(options, settings, deadline, logger);
    let dataSources: ReadonlyMap<object, OpenDataSource> = new Map();
    const failed = new AbortController();
    let parts: ExecutorParts | undefined;
    try {
      dataSources = await openDataSources(options.dataSources ?? [], {
        driver: database.driver,
        database: options.database,
        schema: settings.schema,
        migrate: options.migrate ?? true,
        insist: (name, ask, passes) => deadline.insist(dataSourceQuestion(name), () => deadline.bound(ask()), passes),
      });
      const errors = await deadline.unlessAborted(encodeFixedErrors(serializer));
      parts = new ExecutorParts({ ...launch, logger, serializer, database, dataSources, errors });
      await deadline.bound(parts.#prepare(launch, failed.signal));
      parts.#run();
      return parts;
    } catch (error) {
      failed.abort();
      if (parts !== undefined) await parts.shared.close({ drainMs: 0 });
      await closeDataSources(dataSources);
      if (parts === undefined) {
        await database.driver.close();
        await database.stop();
      }
      throw error;
    }
  }

  private constructor(opened: Opened) {
    const { options, settings, catalog, logger, serializer, errors } = opened;
    const { pollMs } = settings;
    const onFired = (): void => {
      this.executor.wake();
    };
    this.#shutdownTimeoutMs = settings.shutdownTimeoutMs;
    this.#dataSources = opened.dataSources;
    this.shared = new SharedParts({
      runtime: systemRuntime,
      ...opened,
      ...settings,
      notifications: options.notifications ?? true,
      resolve: (workflow) => catalog.resolve(workflow),
      prepare: (definition, args, start, workflowId) => this.engine.prepare(definition, args, start, workflowId),
      engine: () => this.engine,
      heldBy: () => this.executor.identity.executorId,
      onFired,
    });
    const { store, waiter, messaging, queueStore, scheduleStore, outboxStore } = this.shared;
    this.executor = this.#makeExecutor(opened);
    this.engine = new Engine({
      runtime: systemRuntime,
      store,
      transactions: store.transactions({
        idleTimeoutMs: settings.leaseMs * IDLE_TIMEOUT_PER_LEASE,
        dataSources: opened.dataSources,
      }),
      serializer,
      logger,
      catalog,
      executor: this.executor,
      waiter,
      arrivals: messaging.arrivals,
      handleOf: (workflowId) => this.shared.handleOf(workflowId),
    });
    this.#queryDesk = messaging.deskOf(this.engine, this.executor, logger);
    this.#sweeper = new DeduplicationSweeper(systemRuntime, queueStore, logger);
    this.#scheduler = new Scheduler({
      runtime: systemRuntime,
      store: scheduleStore,
      logger,
      pollMs,
      cancelledError: errors.cancelled,
      onFired,
    });
    this.relay = new Relay({
      runtime: systemRuntime,
      store: outboxStore,
      serializer,
      logger,
      settings: settings.outbox,
      pollMs,
    });
    this.#signals = new ShutdownSignals({ signals: options.shutdownOn ?? [], close: () => this.close(), logger });
  }

  /** See `Holdfast.close`. Idempotent: the first call decides. */
  close({ drainMs = this.#shutdownTimeoutMs }: { readonly drainMs?: number } = {}): Promise<void> {
    return (this.#closed ??= this.#close(drainMs));
  }

  /** Tells the database what this process brings along. Asks until there is an answer; `signal` ends that. */
  async #prepare({ options, queues }: CheckedLaunch, signal: AbortSignal): Promise<void> {
    const { queueStore, schedules } = this.shared;
    if (queues.length > 0) await queueStore.define(queues, { isDeclaration: true });
    await schedules.declare(options.schedules ?? []);
    await this.executor.register(signal);
  }

  #run(): void {
    this.shared.store.subscribe(this.#hints());
    this.executor.run(this.engine);
    this.#sweeper.start();
    this.#scheduler.start();
    this.#queryDesk.start();
    this.relay.start();
    this.#signals.start();
  }

  /** Each part has its time, since a database that cannot be reached must not keep a process from ending. */
  async #close(drainMs: number): Promise<void> {
    this.engine.stopAccepting();
    await within(systemRuntime, this.executor.stopClaiming(drainMs), FINAL_DRAIN_MS);
    await within(systemRuntime, Promise.all([this.#sweeper.stop(), this.#scheduler.stop()]), FINAL_DRAIN_MS);
    // Events that workflows still add are left to others.
    await within(systemRuntime, Promise.all([this.engine.idle(), this.relay.drain()]), drainMs);
    await within(systemRuntime, this.engine.giveBackAll(), FINAL_DRAIN_MS);
    await within(
      systemRuntime,
      Promise.all([this.shared.leases.close(), this.#queryDesk.stop(), this.relay.stop()]),
      FINAL_DRAIN_MS,
    );
    await within(systemRuntime, this.executor.deregister(), FINAL_DRAIN_MS);
    await this.shared.close({ drainMs: FINAL_DRAIN_MS });
    await within(systemRuntime, closeDataSources(this.#dataSources), FINAL_DRAIN_MS);
    this.#signals.stop();
  }

  #hints(): StoreHints {
    const hints = this.shared.hints();
    return {
      ...hints,
      onControl: (workflowId) => {
        hints.onControl(workflowId);
        void this.#verify(workflowId);
      },
      onQueries: (workflowIds) => {
        this.#queryDesk.wake(workflowIds);
      },
      onWork: () => {
        this.executor.wake();
      },
      onSchedules: () => {
        this.#scheduler.wake();
      },
      onOutbox: () => {
        this.relay.wake();
      },
      onGap: () => {
        hints.onGap();
        this.#queryDesk.wake(null);
        this.executor.wake();
        this.#scheduler.wake();
        this.relay.wake();
      },
    };
  }

  /** A control operation may have taken a workflow away that runs here. */
  async #verify(workflowId: string): Promise<void> {
    const execution = this.engine.runningExecution(workflowId);
    if (execution === undefined) return;
    try {
      if (!(await this.shared.store.verifyOwnership(execution.ownership))) execution.lose();
    } catch {
      // Closed meanwhile, or refused: the next write or heartbeat finds out.
    }
  }

  #makeExecutor({ options, settings, appVersion, logger, errors }: Opened): Executor {
    return new Executor({
      runtime: systemRuntime,
      store: this.shared.store,
      logger,
      executorId: options.executorId ?? systemRuntime.randomUuid(),
      appVersion,
      leaseMs: settings.leaseMs,
      pollMs: settings.pollMs,
      maxConcurrent: settings.maxConcurrent,
      suspendAfterMs: settings.suspendAfterMs,
      deadLetterError: errors.deadLetter,
      stuckError: errors.stuck,
      stalledError: errors.stalled,
      onSuperseded: () => void this.close({ drainMs: 0 }),
      onReturned: () => {
        this.#queryDesk.wake(null);
      },
    });
  }
}

/** Which of the two databases is away, the data source's or Holdfast's, is in the last failure. */
function dataSourceQuestion(name: string): LaunchQuestion {
  return {
    whom: `Data source "${name}", or the database while it was looked at,`,
    remedy: 'Check that both run, and that a pool of the data source has a connection to give.',
  };
}
