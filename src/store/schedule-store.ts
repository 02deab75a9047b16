import type { CatchUpPolicy, OverlapPolicy } from '../api/schedule.js';

/** Schedules, and the firing of their ticks. Times in milliseconds since 1970, by the database's clock. */
export interface ScheduleStore {
  clockMs(): Promise<number>;
  /**
   * Creates or replaces; a declaration only when it is not the one that was applied last. All of them, or, when some are refused,
   * none.
   */
  define(
    schedules: readonly ScheduleRecord[],
    options: { readonly isDeclaration: boolean },
  ): Promise<readonly RefusedSchedule[]>;
  /** Changes what is there, unless it is of another revision than the one seen. */
  update(name: string, revision: number, changes: ScheduleRecordChanges): Promise<ScheduleUpdate>;
  /** False when there is no such schedule. */
  delete(name: string): Promise<boolean>;
  list(): Promise<readonly StoredSchedule[]>;
  get(name: string): Promise<StoredSchedule | null>;
  /** The first ones by their next tick that come after the given one, due or not. */
  due(after: DueSchedule | null, limit: number): Promise<readonly DueSchedule[]>;
  /** One transaction: checks that the schedule is still as it was seen, enqueues runs, moves the next tick on. */
  fire(request: FireRequest): Promise<FireAnswer>;
  /** One run besides the ticks; null when there is no such schedule. */
  trigger(name: string, workflowId: string, cancelledError: string): Promise<ScheduledRun | null>;
  /** Runs of these ticks; null when there is no such schedule. */
  backfill(name: string, ticks: readonly number[]): Promise<readonly ScheduledRun[] | null>;
  close(): void;
}

export interface ScheduleRecord {
  readonly name: string;
  readonly workflowName: string;
  readonly instance: string | null;
  readonly input: string;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  /** JSON. */
  readonly attributes: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly key: string | null;
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: CatchUpPolicy;
  readonly overlap: OverlapPolicy;
  /** For a new schedule, and for one whose cron expression or time zone becomes another. */
  readonly nextMs: number;
}

export type ScheduleRecordChanges = Partial<Omit<ScheduleRecord, 'name' | 'workflowName' | 'instance'>> & {
  readonly paused?: boolean;
};

export interface StoredSchedule extends ScheduleRecord {
  readonly revision: number;
  readonly paused: boolean;
  readonly lastFiredMs: number | null;
  readonly lastWorkflowId: string | null;
  readonly skipped: number;
  /** The input of the declaration that was applied last. */
  readonly declaredInput: string | null;
  readonly createdMs: number;
  readonly updatedMs: number;
  /** The clock when this was read. */
  readonly nowMs: number;
}

/** `no-turns`: its runs are to wait for each other in a queue that lets several of a key run. */
export type ScheduleRefusal = 'no-queue' | 'no-turns';

export interface RefusedSchedule {
  readonly name: string;
  readonly queue: string;
  readonly refusal: ScheduleRefusal;
}

export type ScheduleUpdate = 'done' | 'missing' | 'stale' | ScheduleRefusal;

/** What it takes to fire a schedule. */
export interface DueSchedule {
  readonly name: string;
  readonly revision: number;
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: CatchUpPolicy;
  readonly nextMs: number;
  /** The clock when this was read. */
  readonly nowMs: number;
}

export interface FireRequest {
  readonly schedule: Pick<DueSchedule, 'name' | 'revision' | 'nextMs'>;
  readonly ticks: readonly number[];
  /** Ticks dropped before. */
  readonly missed: number;
  readonly nextMs: number;
  readonly cancelledError: string;
}

/** `stale`: somebody else fired or changed it, or is about to. */
export type FireAnswer =
  { readonly kind: 'fired'; readonly workflowIds: readonly string[] } | { readonly kind: 'stale' };

export interface ScheduledRun {
  readonly workflowId: string;
  readonly scheduledMs: number;
  readonly isNew: boolean;
}
