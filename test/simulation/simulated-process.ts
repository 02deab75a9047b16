import { Arrivals } from '../../src/engine/arrivals.js';
import { Catalog } from '../../src/engine/catalog.js';
import { attachDefinition } from '../../src/engine/definitions.js';
import { Engine } from '../../src/engine/engine.js';
import { Handle, type HandleHost } from '../../src/engine/handle.js';
import { OutcomeWaiter } from '../../src/engine/outcome-waiter.js';
import { StreamWatcher } from '../../src/engine/stream-watcher.js';
import { within } from '../../src/engine/timer.js';
import type { Logger } from '../../src/api/logger.js';
import { Executor } from '../../src/fleet/executor.js';
import { Messenger } from '../../src/fleet/messenger.js';
import type { FixedErrors } from '../../src/fixed-errors.js';
import type { MemoryDatabase } from '../../src/store/memory/memory-database.js';
import { MemoryAdminStore } from '../../src/store/memory/memory-admin-store.js';
import { MemoryMessageStore } from '../../src/store/memory/memory-message-store.js';
import { MemoryQueueStore } from '../../src/store/memory/memory-queue-store.js';
import { MemoryStore, type MemoryStoreOptions } from '../../src/store/memory/memory-store.js';
import type { Ownership, StoreHints } from '../../src/store/store.js';
import type { ValueSerializer } from '../../src/values/index.js';
import { Actor, type World } from './world.js';
import type { FaultyLink } from './faulty-link.js';
import type { Ledger } from './ledger.js';
import { simulatedWorkflow } from './simulated-workflow.js';
import type { Counts } from './violations.js';
import type { VirtualRuntime } from './virtual-runtime.js';

export const LEASE_MS = 300;
export const POLL_MS = 200;
const SUSPEND_AFTER_MS = 160;
const SHUTDOWN_MS = 50;
const APP_VERSION = 'v1';

const silent: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A process in the world, with what the judges have to know of it. */
export class SimulatedActor extends Actor {
  /** Its lease was taken away behind its back, or another process has registered under its ID: it cannot know. */
  wasRobbed = false;
  /** Bodies that have begun in it and not ended, also of executions that have lost their workflows. */
  openBodies = 0;
}

/** What all processes of a run share. */
export interface Surroundings {
  readonly world: World;
  readonly db: MemoryDatabase;
  readonly ledger: Ledger;
  readonly counts: Counts;
  readonly serializer: ValueSerializer;
  readonly errors: FixedErrors;
}

export interface ProcessParts extends Surroundings {
  readonly actor: SimulatedActor;
  readonly runtime: VirtualRuntime;
  readonly link: FaultyLink;
}

/** A process that has the store open, and where somebody may wait. */
export class SimulatedObserver {
  readonly actor: SimulatedActor;
  readonly runtime: VirtualRuntime;
  readonly link: FaultyLink;
  readonly store: MemoryStore;
  readonly waiter: OutcomeWaiter;
  readonly arrivals: Arrivals;
  protected readonly parts: ProcessParts;

  constructor(parts: ProcessParts) {
    const { runtime, link, actor } = parts;
    this.parts = parts;
    this.actor = actor;
    this.runtime = runtime;
    this.link = link;
    this.store = new ObservedStore(storeOptions(parts), parts);
    this.waiter = new OutcomeWaiter(this.store, POLL_MS, runtime);
    this.arrivals = new Arrivals(this.store, POLL_MS, runtime);
  }

  subscribe(): void {
    this.store.subscribe(this.hints());
  }

  /** Tells the ledger what this process is told of the workflow. */
  async observe(workflowId: string): Promise<void> {
    const { world, ledger } = this.parts;
    const since = world.now;
    const outcome = await this.waiter.wait(workflowId, { runsHere: this.runs(workflowId) });
    ledger.tell(this.actor.name, workflowId, since, outcome);
  }

  runs(_workflowId: string): boolean {
    return false;
  }

  protected hints(): StoreHints {
    const onOutcomes = (workflowIds: readonly string[] | null): void => {
      this.waiter.check(workflowIds);
      this.arrivals.events.check(workflowIds);
    };
    return {
      onControl: (workflowId) => {
        onOutcomes([workflowId]);
      },
      onOutcomes,
      onMessages: (workflowIds) => {
        this.arrivals.check(workflowIds);
      },
      onStreams: () => undefined,
      onQueries: () => undefined,
      onOutbox: () => undefined,
      onWork: () => undefined,
      onSchedules: () => undefined,
      onGap: () => {
        this.arrivals.check(null);
        this.waiter.check(null);
      },
    };
  }
}

/** Acts from outside: runs nothing itself. */
export class SimulatedClient extends SimulatedObserver {
  readonly admin: MemoryAdminStore;
  readonly queues: MemoryQueueStore;
  readonly messenger: Messenger;

  constructor(parts: ProcessParts) {
    super(parts);
    const options = storeOptions(parts);
    this.admin = new MemoryAdminStore(options);
    this.queues = new MemoryQueueStore(options);
    this.messenger = new Messenger({
      store: new MemoryMessageStore(options),
      serializer: parts.serializer,
      onSent: (workflowId) => {
        this.arrivals.check([workflowId]);
      },
    });
  }
}

/** What `Holdfast.launch` puts together, on the store in memory and in virtual time. */
export class SimulatedProcess extends SimulatedObserver {
  readonly executorId: string;
  readonly engine: Engine;
  readonly executor: Executor;
  isLaunched = false;
  #closed: Promise<void> | undefined;

  constructor(parts: ProcessParts, executorId: string) {
    super(parts);
    const { runtime, serializer, errors } = parts;
    this.executorId = executorId;
    this.executor = new Executor({
      runtime,
      store: this.store,
      logger: silent,
      executorId,
      appVersion: APP_VERSION,
      leaseMs: LEASE_MS,
      pollMs: POLL_MS,
      maxConcurrent: 100,
      suspendAfterMs: SUSPEND_AFTER_MS,
      deadLetterError: errors.deadLetter,
      stuckError: errors.stuck,
      stalledError: errors.stalled,
      onSuperseded: () => void this.close(0),
      onReturned: () => undefined,
    });
    const definition = simulatedWorkflow(parts);
    const callable = (): void => undefined;
    attachDefinition(callable, definition);
    const handles: HandleHost = {
      serializer,
      streams: this.store.streams,
      streamWatcher: new StreamWatcher(this.store.streams, POLL_MS, runtime),
      waitForResult: (workflowId) => this.waiter.wait(workflowId, { runsHere: this.runs(workflowId) }),
      statusOf: notSimulated,
      cancel: notSimulated,
      messaging: { send: notSimulated, getEvent: notSimulated, query: notSimulated, update: notSimulated },
    };
    this.engine = new Engine({
      runtime,
      store: this.store,
      serializer,
      logger: silent,
      catalog: new Catalog([callable]),
      executor: this.executor,
      waiter: this.waiter,
      arrivals: this.arrivals,
      handleOf: (workflowId) => new Handle(handles, workflowId),
    });
  }

  /** Never settles when it dies before. */
  async launch(): Promise<void> {
    try {
      await this.executor.register();
    } catch (error) {
      // As when a launch fails, nothing is left of it.
      void this.close(0);
      throw error;
    }
    this.subscribe();
    this.executor.run(this.engine);
    this.isLaunched = true;
  }

  /** As `Holdfast.close`. */
  close(drainMs = SHUTDOWN_MS): Promise<void> {
    return (this.#closed ??= this.#close(drainMs));
  }

  get isClosing(): boolean {
    return this.#closed !== undefined;
  }

  override runs(workflowId: string): boolean {
    return this.engine.runningExecution(workflowId) !== undefined;
  }

  protected override hints(): StoreHints {
    const hints = super.hints();
    return {
      ...hints,
      onControl: (workflowId) => {
        hints.onControl(workflowId);
        void this.#verify(workflowId);
      },
      onWork: () => {
        this.executor.wake();
      },
      onGap: () => {
        hints.onGap();
        this.executor.wake();
      },
    };
  }

  async #close(drainMs: number): Promise<void> {
    const { runtime } = this;
    this.engine.stopAccepting();
    await within(runtime, this.executor.stopClaiming(drainMs), SHUTDOWN_MS);
    await within(runtime, this.engine.idle(), drainMs);
    await within(runtime, this.engine.giveBackAll(), SHUTDOWN_MS);
    await within(runtime, this.executor.deregister(), SHUTDOWN_MS);
    await this.store.close({ drainMs: SHUTDOWN_MS });
    this.waiter.close();
    this.arrivals.close();
  }

  async #verify(workflowId: string): Promise<void> {
    const execution = this.engine.runningExecution(workflowId);
    if (execution === undefined) return;
    try {
      if (!(await this.store.verifyOwnership(execution.ownership))) execution.lose();
    } catch {
      // Closed meanwhile.
    }
  }
}

/** Tells the ledger of answers that only the judges of bodies need, and counts. */
class ObservedStore extends MemoryStore {
  readonly #ledger: Ledger;

  constructor(options: MemoryStoreOptions, { ledger }: ProcessParts) {
    super(options);
    this.#ledger = ledger;
  }

  override async verifyOwnership(ownership: Ownership): Promise<boolean> {
    const isOwned = await super.verifyOwnership(ownership);
    if (isOwned) this.#ledger.verified(ownership.token);
    return isOwned;
  }
}

function storeOptions({ db, link, runtime }: ProcessParts): MemoryStoreOptions {
  return {
    database: db,
    link,
    clock: { pause: (ms, signal) => pause(runtime, ms, signal) },
    newNonce: () => runtime.randomUuid(),
  };
}

function notSimulated(): Promise<never> {
  return Promise.reject(new Error('Not in this simulation.'));
}

function pause(runtime: VirtualRuntime, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || ms <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      cancel();
      resolve();
    };
    const cancel = runtime.startTimer(ms, end);
    signal.addEventListener('abort', end, { once: true });
  });
}
