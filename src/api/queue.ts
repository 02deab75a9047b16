import type { Duration } from './duration.js';
import type { StartOptions } from './workflow-options.js';

/** At most so many starts in any window of this length. */
export interface RateLimit {
  /** Starts; from 1. */
  readonly limit: number;
  /** Length of the window. It slides: no window of this length has more starts, wherever it begins. */
  readonly period: Duration;
}

/**
 * What a queue lets through. A limit that is missing is none. All of them are kept by the database, over all executors, app
 * versions, crashes and recoveries: a workflow holds its slot from its claim until it ends, is blocked, or is given back.
 */
export interface QueueLimits {
  /** Workflows of the queue that run at the same time. */
  readonly concurrency?: number;
  /** The same, for each executor. */
  readonly executorConcurrency?: number;
  /** The same, for each key. With 1, the workflows of a key run one by one, in the order in which they were enqueued. */
  readonly keyConcurrency?: number;
  /** Every claim of a workflow counts, also the one that recovers it. */
  readonly rateLimit?: RateLimit;
  /** The same, for each key. */
  readonly keyRateLimit?: RateLimit;
}

/** A queue as it is declared in `launch` or defined at run time. */
export interface QueueDefinition extends QueueLimits {
  /** 1 to 255 bytes. */
  readonly name: string;
}

/** Settings to change; null takes a limit away, and what is missing stays. */
export type QueueChanges = { readonly [Limit in keyof QueueLimits]?: QueueLimits[Limit] | null };

/** A queue as it is stored. Periods in milliseconds; null: no limit. */
export interface QueueSettings {
  readonly name: string;
  readonly concurrency: number | null;
  readonly executorConcurrency: number | null;
  readonly keyConcurrency: number | null;
  readonly rateLimit: { readonly limit: number; readonly period: number } | null;
  readonly keyRateLimit: { readonly limit: number; readonly period: number } | null;
  /** Nothing is started from it; what runs goes on. */
  readonly paused: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A queue with what is in it, counted at that moment. */
export interface QueueDetails extends QueueSettings {
  /** Workflows that could start. */
  readonly waiting: number;
  /** Workflows whose time has not come. */
  readonly delayed: number;
  /** Workflows that hold a slot. */
  readonly running: number;
  /** Workflows that wait for a person, and hold no slot. */
  readonly blocked: number;
}

export interface QueueDeleteRequest {
  /**
   * What becomes of workflows in it that have not ended: `refuse` keeps the queue, `release` lets them go on without limits, and
   * start at once what waits. Default `refuse`.
   */
  readonly workflows?: 'refuse' | 'release';
}

/** Queues are rows of the database: whatever is changed here holds for all executors from their next claim on. */
export interface QueueOperations {
  /**
   * Creates a queue, or replaces all limits of the one that there is.
   * @throws InvalidArgumentError
   */
  define(definition: QueueDefinition): Promise<void>;
  /** @throws QueueNotFoundError, InvalidArgumentError */
  get(name: string): Promise<QueueDetails>;
  /** All queues, by name; with `counts` also what is in them, which takes a while for long lines. */
  list(): Promise<readonly QueueSettings[]>;
  list(options: { readonly counts: true }): Promise<readonly QueueDetails[]>;
  /**
   * Changes some limits. What runs already goes on, also above a lower limit.
   * @throws QueueNotFoundError, InvalidArgumentError
   */
  update(name: string, changes: QueueChanges): Promise<void>;
  /** Starts nothing from the queue any more. What runs goes on, and is recovered. @throws QueueNotFoundError */
  pause(name: string): Promise<void>;
  /** @throws QueueNotFoundError */
  resume(name: string): Promise<void>;
  /**
   * Deletes a queue. Workflows that have ended stay; one that is resumed later runs without limits. A launch that declares the
   * queue creates it again.
   * @throws QueueNotFoundError
   * @throws QueueNotEmptyError while workflows that have not ended are in it, or somebody is enqueuing into it all the time.
   */
  delete(name: string, options?: QueueDeleteRequest): Promise<void>;
}

/** Lets only one workflow with this ID be in the queue. */
export interface Deduplication {
  /** 1 to 512 bytes; of this queue. */
  readonly id: string;
  /** How long the ID is held, whatever becomes of the workflow. Default: until the workflow has ended. */
  readonly window?: Duration;
  /**
   * When another workflow holds the ID: `reject` throws a {@link WorkflowDeduplicatedError} that names it, `attach` returns
   * its handle.
   */
  readonly onConflict: 'reject' | 'attach';
}

/** Lets only one workflow with this key be in the queue at a time. The key is a deduplication ID, held until the workflow ends. */
export interface Singleton {
  /** 1 to 512 bytes; of this queue. */
  readonly key: string;
  /**
   * When another workflow has the key: `skip` enqueues nothing and returns its handle, `cancel-older` cancels it, in the same
   * transaction, and takes its place.
   */
  readonly onConflict: 'skip' | 'cancel-older';
}

/**
 * Lets calls that come in quick succession be one workflow, which has what the last of them gave it. Each call pushes its start
 * back and replaces input and options, as long as no execution has owned it; the next one is a new workflow.
 */
export interface Debounce {
  /** 1 to 512 bytes; of this queue and this workflow's name. */
  readonly key: string;
  /** How long after the last call the workflow starts; at least 1 ms. */
  readonly delay: Duration;
  /** How long after the first call it starts at the latest. Default: no limit. */
  readonly maxWait?: Duration;
}

/** What one enqueued workflow can be given besides what a start takes. */
export interface EnqueueItemOptions extends StartOptions {
  /** Lower goes first; a whole number of 32 bits. Default 0. Needs a queue. */
  readonly priority?: number;
  /** Whose it is: keys take turns, and have limits of their own. 1 to 512 bytes. Default: none. Needs a queue. */
  readonly key?: string;
  /** Not to be started before this much time has passed. Default: none. */
  readonly delay?: Duration;
  /** Not together with `singleton` or `debounce`. */
  readonly deduplication?: Deduplication;
  /** Not together with `debounce`. */
  readonly singleton?: Singleton;
  /** Not together with `delay`. */
  readonly debounce?: Debounce;
}

/** What `enqueue` takes. */
export interface EnqueueOptions extends EnqueueItemOptions {
  /** Default: none. The workflow is started as soon as an executor has room. */
  readonly queue?: string;
  /**
   * Your own open transaction, in the database of Holdfast: a client of `pg`, or what `sql.begin` of `postgres` passes. The
   * workflow is there exactly if it commits. Not inside a workflow.
   */
  readonly transaction?: CallersTransaction;
}

/** One of several workflows to be enqueued at once. */
export interface EnqueueItem<Arguments extends unknown[]> extends EnqueueItemOptions {
  readonly args: Arguments;
}

/**
 * A connection of the caller's with an open transaction, by what tells it from other things: pools of `pg` have `totalCount`,
 * and an `sql` of `postgres` has `begin`.
 */
export type CallersTransaction =
  | { readonly query: (...args: never[]) => unknown; readonly totalCount?: never }
  | { readonly unsafe: (...args: never[]) => unknown; readonly begin?: never };
