import { randomUUID } from 'node:crypto';
import type { CatchUpPolicy, OverlapPolicy } from '../../api/schedule.js';
import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import type {
  DueSchedule,
  FireAnswer,
  FireRequest,
  RefusedSchedule,
  ScheduledRun,
  ScheduleRecord,
  ScheduleRecordChanges,
  ScheduleStore,
  ScheduleUpdate,
  StoredSchedule,
} from '../schedule-store.js';
import { askAgain, type AskAgainOptions } from './ask-again.js';
import { WorkAnnouncer } from './work-announcer.js';

/** Longest wait for an answer to the scheduler, in milliseconds: a connection that is dead must not stop the ticks. */
const FIRING_TIMEOUT_MS = 10_000;

const ms = (expression: string): string => `(extract(epoch FROM ${expression}) * 1000)::float8`;

const SCHEDULE_COLUMNS = `
  (l.definition).name, (l.definition).workflow_name, (l.definition).instance, (l.definition).input,
  (l.definition).max_attempts, (l.definition).timeout_ms::float8 AS timeout_ms,
  (l.definition).attributes::text AS attributes, (l.definition).queue, (l.definition).priority,
  (l.definition).partition_key, (l.definition).cron, (l.definition).time_zone, (l.definition).catch_up,
  (l.definition).overlap, (l.definition).paused, (l.definition).revision::float8 AS revision,
  ${ms('(l.definition).next_fire_at')} AS next_ms, ${ms('(l.definition).last_fired_at')} AS last_fired_ms,
  (l.definition).last_workflow_id, (l.definition).skipped::float8 AS skipped,
  (l.definition).declared ->> 'input' AS declared_input, ${ms('(l.definition).created_at')} AS created_ms,
  ${ms('(l.definition).updated_at')} AS updated_ms, l.now_ms`;

interface ScheduleRow extends SqlRow {
  readonly name: string;
  readonly workflow_name: string;
  readonly instance: string | null;
  readonly input: string;
  readonly max_attempts: number;
  readonly timeout_ms: number | null;
  readonly attributes: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly partition_key: string | null;
  readonly cron: string;
  readonly time_zone: string;
  readonly catch_up: CatchUpPolicy;
  readonly overlap: OverlapPolicy;
  readonly paused: boolean;
  readonly revision: number;
  readonly next_ms: number;
  readonly last_fired_ms: number | null;
  readonly last_workflow_id: string | null;
  readonly skipped: number;
  readonly declared_input: string | null;
  readonly created_ms: number;
  readonly updated_ms: number;
  readonly now_ms: number;
}

interface DueRow extends SqlRow {
  readonly name: string;
  readonly revision: number;
  readonly cron: string;
  readonly time_zone: string;
  readonly catch_up: CatchUpPolicy;
  readonly next_ms: number;
  readonly now_ms: number;
}

interface RunRow extends SqlRow {
  readonly workflow_id: string;
  readonly scheduled_ms: number;
  readonly is_new: boolean;
}

const REFUSALS = { no_queue: 'no-queue', no_turns: 'no-turns' } as const;
type RefusalText = keyof typeof REFUSALS;

export interface PostgresScheduleStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
}

/** The schedule store on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresScheduleStore implements ScheduleStore {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #announcer: WorkAnnouncer;
  readonly #closing = new AbortController();

  constructor({ driver, schema }: PostgresScheduleStoreOptions) {
    this.#driver = driver;
    this.#schema = schema;
    this.#announcer = new WorkAnnouncer(driver, `${schema}.work`);
  }

  async clockMs(): Promise<number> {
    const [row] = await this.#ask<{ now_ms: number }>(`SELECT ${ms(`${this.#call('clock')}()`)} AS now_ms`, []);
    if (row === undefined) throw new TypeError('clock returned no row.');
    return row.now_ms;
  }

  async define(
    schedules: readonly ScheduleRecord[],
    { isDeclaration }: { readonly isDeclaration: boolean },
  ): Promise<readonly RefusedSchedule[]> {
    const rows = await this.#ask<{ name: string; refusal: RefusalText; queue: string }>(
      `SELECT name, refusal, queue FROM ${this.#call('define_schedules')}($1::text::jsonb, $2::bool)`,
      [JSON.stringify(schedules.map(toColumns)), isDeclaration],
    );
    return rows.map(({ name, refusal, queue }) => ({ name, queue, refusal: REFUSALS[refusal] }));
  }

  async update(name: string, revision: number, changes: ScheduleRecordChanges): Promise<ScheduleUpdate> {
    const [row] = await this.#ask<{ answer: 'done' | 'missing' | 'stale' | RefusalText }>(
      `SELECT ${this.#call('update_schedule')}($1::text, $2::int8, $3::text::jsonb) AS answer`,
      [name, revision, JSON.stringify(toColumns(changes))],
    );
    if (row === undefined) throw new TypeError('update_schedule returned no row.');
    const { answer } = row;
    return answer === 'no_queue' || answer === 'no_turns' ? REFUSALS[answer] : answer;
  }

  async delete(name: string): Promise<boolean> {
    let isRepeated = false;
    const onLost = (): void => {
      isRepeated = true;
    };
    const text = `SELECT ${this.#call('delete_schedule')}($1::text) AS found`;
    const [row] = await this.#ask<{ found: boolean }>(text, [name], { onLost });
    // If it is not there at a second try, the first one, whose reply was lost, has deleted it.
    return row?.found === true || isRepeated;
  }

  async list(): Promise<readonly StoredSchedule[]> {
    return (await this.#read(null)).map(toStored);
  }

  async get(name: string): Promise<StoredSchedule | null> {
    const [row] = await this.#read(name);
    return row === undefined ? null : toStored(row);
  }

  async due(after: DueSchedule | null, limit: number): Promise<readonly DueSchedule[]> {
    const rows = await this.#driver.query<DueRow>(
      `SELECT name, revision::float8 AS revision, cron, time_zone, catch_up, next_ms, now_ms
         FROM ${this.#call('due_schedules')}($1::int8, $2::text, $3::int4)`,
      [after?.nextMs ?? null, after?.name ?? null, limit],
      { prepare: 'holdfast_due_schedules', timeoutMs: FIRING_TIMEOUT_MS },
    );
    return rows.map((row) => ({
      name: row.name,
      revision: row.revision,
      cron: row.cron,
      timeZone: row.time_zone,
      catchUp: row.catch_up,
      nextMs: row.next_ms,
      nowMs: row.now_ms,
    }));
  }

  /** Not tried again here: whoever fires looks first what is due by then. */
  async fire({ schedule, ticks, missed, nextMs, cancelledError }: FireRequest): Promise<FireAnswer> {
    const [row] = await this.#driver.query<{ answer: 'fired' | 'stale'; workflow_ids: readonly string[] | null }>(
      `SELECT answer, workflow_ids
         FROM ${this.#call('fire_schedule')}($1::text, $2::int8, $3::int8, $4::int8[], $5::int8, $6::int8, $7::text)`,
      [schedule.name, schedule.revision, schedule.nextMs, ticks, missed, nextMs, cancelledError],
      { prepare: 'holdfast_fire_schedule', timeoutMs: FIRING_TIMEOUT_MS },
    );
    if (row === undefined) throw new TypeError('fire_schedule returned no row.');
    if (row.answer === 'stale') return { kind: 'stale' };
    const workflowIds = row.workflow_ids ?? [];
    if (workflowIds.length > 0) this.#announcer.announce();
    return { kind: 'fired', workflowIds };
  }

  async trigger(name: string, workflowId: string, cancelledError: string): Promise<ScheduledRun | null> {
    const [run] = await this.#run(name, 'trigger', workflowId, null, cancelledError);
    return run ?? null;
  }

  async backfill(name: string, ticks: readonly number[]): Promise<readonly ScheduledRun[] | null> {
    if (ticks.length === 0) return (await this.get(name)) === null ? null : [];
    const runs = await this.#run(name, 'backfill', null, ticks, null);
    return runs.length === 0 ? null : runs;
  }

  close(): void {
    this.#closing.abort();
    this.#announcer.close();
  }

  async #run(
    name: string,
    cause: 'trigger' | 'backfill',
    workflowId: string | null,
    ticks: readonly number[] | null,
    cancelledError: string | null,
  ): Promise<readonly ScheduledRun[]> {
    const rows = await this.#ask<RunRow>(
      `SELECT workflow_id, scheduled_ms, is_new
         FROM ${this.#call('run_schedule')}($1::text, $2::text, $3::text, $4::int8[], $5::uuid, $6::text)`,
      [name, cause, workflowId, ticks, randomUUID(), cancelledError],
    );
    if (rows.some((row) => row.is_new)) this.#announcer.announce();
    return rows.map((row) => ({ workflowId: row.workflow_id, scheduledMs: row.scheduled_ms, isNew: row.is_new }));
  }

  #read(name: string | null): Promise<readonly ScheduleRow[]> {
    return this.#ask<ScheduleRow>(`SELECT ${SCHEDULE_COLUMNS} FROM ${this.#call('list_schedules')}($1::text) l`, [
      name,
    ]);
  }

  #ask<Row extends SqlRow>(
    text: string,
    parameters: readonly SqlParameter[],
    options?: AskAgainOptions,
  ): Promise<readonly Row[]> {
    return askAgain<Row>(this.#driver, this.#closing.signal, text, parameters, options);
  }

  #call(functionName: string): string {
    return `"${this.#schema}".${functionName}`;
  }
}

/** Keys that are missing stay missing: they are not to be changed. */
function toColumns(schedule: Partial<ScheduleRecord> & ScheduleRecordChanges): Record<string, unknown> {
  const { attributes, nextMs } = schedule;
  return {
    name: schedule.name,
    workflow_name: schedule.workflowName,
    instance: schedule.instance,
    input: schedule.input,
    max_attempts: schedule.maxAttempts,
    timeout_ms: schedule.timeoutMs,
    attributes: typeof attributes === 'string' ? (JSON.parse(attributes) as unknown) : attributes,
    queue: schedule.queue,
    priority: schedule.priority,
    partition_key: schedule.key,
    cron: schedule.cron,
    time_zone: schedule.timeZone,
    catch_up: schedule.catchUp,
    overlap: schedule.overlap,
    paused: schedule.paused,
    next_fire_at: nextMs === undefined ? undefined : new Date(nextMs).toISOString(),
  };
}

function toStored(row: ScheduleRow): StoredSchedule {
  return {
    name: row.name,
    workflowName: row.workflow_name,
    instance: row.instance,
    input: row.input,
    maxAttempts: row.max_attempts,
    timeoutMs: row.timeout_ms,
    attributes: row.attributes,
    queue: row.queue,
    priority: row.priority,
    key: row.partition_key,
    cron: row.cron,
    timeZone: row.time_zone,
    catchUp: row.catch_up,
    overlap: row.overlap,
    paused: row.paused,
    revision: row.revision,
    nextMs: row.next_ms,
    lastFiredMs: row.last_fired_ms,
    lastWorkflowId: row.last_workflow_id,
    skipped: row.skipped,
    declaredInput: row.declared_input,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
    nowMs: row.now_ms,
  };
}
