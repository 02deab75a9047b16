import type { Duration } from './duration.js';
import type { StoredValue } from './stored-value.js';
import type { WorkflowHandle } from './workflow-handle.js';

/**
 * What becomes of ticks that nobody fired in time, because no executor ran or the database was away. A tick counts as missed once
 * it is 10 s late; until then it is fired whatever the policy.
 *
 * - `none`: missed ticks are dropped.
 * - `last`: the last of them is fired, unless a tick that is in time is fired now anyway.
 * - `all`: each of them is fired. Needs `overlap: 'queue'`.
 */
export type CatchUpPolicy = 'none' | 'last' | 'all';

/**
 * What becomes of a tick while an earlier run of its schedule has not ended.
 *
 * - `skip`: the tick is dropped.
 * - `queue`: its run waits; the runs of the schedule go one after the other.
 * - `cancel`: the earlier run is cancelled.
 */
export type OverlapPolicy = 'skip' | 'queue' | 'cancel';

/** What a schedule is made of besides its name and its workflow. */
export interface ScheduleSettings {
  /**
   * Five fields (minute, hour, day of month, month, day of week) or six, seconds first; or a nickname such as `@daily`. The
   * syntax is that of `croner`, which computes the ticks.
   */
  readonly cron: string;
  /** A name of the IANA time zone database, such as `Europe/Berlin`. Default `UTC`. */
  readonly timeZone?: string;
  /** Default `last`. */
  readonly catchUp?: CatchUpPolicy;
  /** Default `skip`. */
  readonly overlap?: OverlapPolicy;
  /**
   * A queue that the runs are put into. Default: none; runs start as soon as an executor has room. With `overlap: 'queue'` the
   * queue must let one at a time of a key run (`keyConcurrency: 1`, or `concurrency: 1`), since runs wait for each other there,
   * under the schedule's name as their key.
   */
  readonly queue?: string;
  /** Lower goes first; a whole number of 32 bits. Default 0. Needs a queue. */
  readonly priority?: number;
  /** As for `enqueue`. Needs a queue; not with `overlap: 'queue'`. */
  readonly key?: string;
  /** Overrides the workflow's own `timeout`. */
  readonly timeout?: Duration;
  /** Overrides the workflow's own `maxAttempts`. */
  readonly maxAttempts?: number;
  /** A plain JSON object that each run has, as for `start`; at most 64 KiB. */
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** What every definition has, whatever the workflow's arguments. */
interface ScheduleFrame extends ScheduleSettings {
  /** 1 to 255 bytes. */
  readonly name: string;
  /** For workflows that are methods of registered objects: which of them. */
  readonly instance?: string;
}

/** Arguments may be left out where the workflow can do without. */
export type ScheduleArguments<Arguments extends readonly unknown[]> = [] extends Arguments
  ? { readonly args?: Readonly<Arguments> }
  : { readonly args: Readonly<Arguments> };

/** A schedule with the arguments of its workflow. */
export type ScheduleDefinition<Arguments extends unknown[]> = ScheduleFrame & {
  /** A workflow function, or the name of a workflow. */
  readonly workflow: string | ((...args: Arguments) => Promise<unknown>);
} & ScheduleArguments<Arguments>;

/** A schedule whatever its workflow's arguments are. */
export interface AnySchedule extends ScheduleFrame {
  /** A workflow function, or the name of a workflow. */
  readonly workflow: string | ((...args: never[]) => Promise<unknown>);
  /** Its arguments, the same for each run. */
  readonly args?: readonly unknown[];
}

/** Checks the arguments of each schedule in a list against its workflow. */
export type CheckedSchedules<Schedules extends readonly AnySchedule[]> = {
  readonly [Index in keyof Schedules]: Schedules[Index] extends {
    readonly workflow: (...args: infer Arguments) => Promise<unknown>;
  }
    ? ScheduleFrame & { readonly workflow: Schedules[Index]['workflow'] } & ScheduleArguments<Arguments>
    : Schedules[Index];
};

/** Settings to change; null takes one away, and what is missing stays. */
export interface ScheduleChanges extends Partial<Omit<ScheduleSettings, 'queue' | 'key' | 'timeout' | 'attributes'>> {
  readonly queue?: string | null;
  readonly key?: string | null;
  readonly timeout?: Duration | null;
  readonly attributes?: Readonly<Record<string, unknown>> | null;
  readonly args?: readonly unknown[];
}

/** A schedule as it is stored. */
export interface ScheduleSummary {
  readonly name: string;
  readonly workflow: string;
  readonly instance: string | null;
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: CatchUpPolicy;
  readonly overlap: OverlapPolicy;
  readonly queue: string | null;
  readonly priority: number;
  readonly key: string | null;
  readonly timeoutMs: number | null;
  readonly maxAttempts: number;
  readonly attributes: Readonly<Record<string, unknown>> | null;
  readonly paused: boolean;
  /** The next tick, or one that is just being fired; null while paused. */
  readonly nextFireAt: Date | null;
  /** The last tick that led to a run, and the ID of that run. */
  readonly lastFiredAt: Date | null;
  readonly lastWorkflowId: string | null;
  /** Ticks that were dropped, by the overlap or the catch-up policy; of one gap at most 200 are counted. */
  readonly skipped: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface ScheduleDetails extends ScheduleSummary {
  /** The arguments of each run. */
  readonly args: StoredValue;
}

/** A run that a backfill asked for. */
export interface BackfilledRun {
  readonly workflowId: string;
  readonly scheduledAt: Date;
  /** False: there was a run of this tick already, which stays as it is. */
  readonly isNew: boolean;
}

/**
 * Schedules are rows of the database: whatever is changed here holds for all executors at once, and what is not changed stays,
 * the next tick above all.
 */
export interface ScheduleOperations {
  /**
   * Creates a schedule, or replaces the definition of the one that there is. Its next tick moves only when `cron` or `timeZone`
   * has become another; a paused one stays paused.
   *
   * @throws InvalidArgumentError, InvalidCronError, WorkflowNotRegisteredError, QueueNotFoundError, SchemaViolationError,
   *   ValueNotSerializableError, PayloadTooLargeError, before anything is written.
   */
  define<Arguments extends unknown[]>(definition: ScheduleDefinition<Arguments>): Promise<void>;
  /**
   * Changes some settings. The next tick moves only when `cron` or `timeZone` becomes another.
   * @throws ScheduleNotFoundError, and what `define` throws.
   */
  update(name: string, changes: ScheduleChanges): Promise<void>;
  /** Fires nothing any more. Runs go on. @throws ScheduleNotFoundError */
  pause(name: string): Promise<void>;
  /** Goes on with the next tick from now on: those that passed meanwhile are not made up for. @throws ScheduleNotFoundError */
  resume(name: string): Promise<void>;
  /** Deletes the schedule; its runs stay and go on. A launch that declares it creates it anew. @throws ScheduleNotFoundError */
  delete(name: string): Promise<void>;
  /** All schedules, by name. */
  list(): Promise<readonly ScheduleSummary[]>;
  /** @throws ScheduleNotFoundError */
  get(name: string): Promise<ScheduleDetails>;
  /**
   * Runs it now, also while it is paused. The tick of the run is the moment of the call; the next tick stays. Under
   * `overlap: 'skip'` it runs beside an earlier run; `queue` and `cancel` do what they do at a tick.
   * @throws ScheduleNotFoundError, QueueNotFoundError
   */
  trigger(name: string): Promise<WorkflowHandle>;
  /**
   * Runs each tick from `from` to before `to`, one after the other, but for those that have a run already. At most 10,000 ticks.
   * @throws ScheduleNotFoundError, QueueNotFoundError, InvalidArgumentError
   */
  backfill(name: string, range: { readonly from: Date; readonly to: Date }): Promise<readonly BackfilledRun[]>;
  /**
   * The next ticks, soonest first; of a paused schedule those it would have if it were resumed now.
   * @param options.count 1 to 100. Default 10.
   * @throws ScheduleNotFoundError, InvalidArgumentError
   */
  nextFireTimes(name: string, options?: { readonly count?: number }): Promise<readonly Date[]>;
}
