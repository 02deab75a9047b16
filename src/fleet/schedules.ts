import { isDeepStrictEqual } from 'node:util';
import { readStoredValue } from '../admin/details.js';
import type {
  AnySchedule,
  BackfilledRun,
  ScheduleChanges,
  ScheduleDefinition,
  ScheduleDetails,
  ScheduleOperations,
  ScheduleSummary,
} from '../api/schedule.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import { wholeNumber } from '../engine/whole-number.js';
import { nextTurn } from '../engine/timer.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { DatabaseError } from '../errors/database-errors.js';
import { QueueNotFoundError } from '../errors/queue-errors.js';
import { ScheduleNotFoundError } from '../errors/schedule-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RefusedSchedule, ScheduleRecordChanges, ScheduleStore, StoredSchedule } from '../store/schedule-store.js';
import { checkDefinition, checkScheduleName } from './schedule-form.js';
import { prepareChanges, prepareSchedule, type PreparationParts, type PreparedSchedule } from './prepare-schedule.js';
import { Ticks } from './ticks.js';

/** Ticks that one backfill takes. */
const MOST_BACKFILLED = 10_000;
/** Each takes 50 µs to compute. */
const MOST_FIRE_TIMES = 100;
/** Ticks computed before others get their turn. */
const COMPUTED_AT_ONCE = 100;
const DEFAULT_FIRE_TIMES = 10;
/** What a database function says when a queue is not there. */
const NO_QUEUE_SQLSTATE = 'HF001';

export interface SchedulesParts extends PreparationParts {
  readonly runtime: Runtime;
  readonly store: ScheduleStore;
  readonly cancelledError: string;
  readonly handleOf: (workflowId: string) => WorkflowHandle;
  /** Runs were enqueued. */
  readonly onFired: () => void;
}

/** {@link ScheduleOperations} on a {@link ScheduleStore}. */
export class Schedules implements ScheduleOperations {
  readonly #parts: SchedulesParts;

  constructor(parts: SchedulesParts) {
    this.#parts = parts;
  }

  async define<Arguments extends unknown[]>(definition: ScheduleDefinition<Arguments>): Promise<void> {
    await this.#define([await prepareSchedule(this.#parts, definition as AnySchedule)], false);
  }

  /** Applies what a launch declares. Nothing is written when one of them is refused. @throws what `define` throws. */
  async declare(definitions: readonly AnySchedule[]): Promise<void> {
    const prepared = await Promise.all(definitions.map((definition) => prepareSchedule(this.#parts, definition)));
    await this.#define(await Promise.all(prepared.map((schedule) => this.#asDeclaredBefore(schedule))), true);
  }

  async update(name: string, changes: ScheduleChanges): Promise<void> {
    await this.#change(name, (found) => prepareChanges(this.#parts, found, changes));
  }

  pause(name: string): Promise<void> {
    return this.#change(name, () => ({ paused: true }));
  }

  resume(name: string): Promise<void> {
    return this.#change(name, ({ paused, cron, timeZone, nowMs }) =>
      paused ? { paused: false, nextMs: new Ticks(cron, timeZone).after(nowMs) } : null,
    );
  }

  async delete(name: string): Promise<void> {
    if (!(await this.#parts.store.delete(checkScheduleName(name)))) throw notFound(name);
  }

  async list(): Promise<readonly ScheduleSummary[]> {
    return (await this.#parts.store.list()).map(toSummary);
  }

  async get(name: string): Promise<ScheduleDetails> {
    const found = await this.#find(name);
    const { serializer } = this.#parts;
    const args = await readStoredValue(found.input, { decode: (text) => serializer.decode(text) });
    return { ...toSummary(found), args };
  }

  async trigger(name: string): Promise<WorkflowHandle> {
    const { runtime, store, cancelledError, handleOf, onFired } = this.#parts;
    const workflowId = `${checkScheduleName(name)}/${runtime.sortableUuid()}`;
    const run = await withQueueErrors(() => store.trigger(name, workflowId, cancelledError));
    if (run === null) throw notFound(name);
    onFired();
    return handleOf(run.workflowId);
  }

  async backfill(
    name: string,
    { from, to }: { readonly from: Date; readonly to: Date },
  ): Promise<readonly BackfilledRun[]> {
    const { runtime, store, onFired } = this.#parts;
    const [fromMs, toMs] = [momentOf(from, 'from'), momentOf(to, 'to')];
    if (fromMs > toMs) throw new InvalidArgumentError('The range of a backfill ends before it begins.');
    const { cron, timeZone } = await this.#find(name);
    const ticks = await ticksBetween(runtime, new Ticks(cron, timeZone), fromMs, toMs);
    const runs = await withQueueErrors(() => store.backfill(name, ticks));
    if (runs === null) throw notFound(name);
    onFired();
    return runs.map(({ workflowId, scheduledMs, isNew }) => ({
      workflowId,
      scheduledAt: new Date(scheduledMs),
      isNew,
    }));
  }

  async nextFireTimes(name: string, { count }: { readonly count?: number } = {}): Promise<readonly Date[]> {
    const wanted = wholeNumber(count ?? DEFAULT_FIRE_TIMES, 1, MOST_FIRE_TIMES, 'count');
    const { cron, timeZone, paused, nextMs, nowMs } = await this.#find(name);
    const ticks = new Ticks(cron, timeZone);
    const first = paused ? ticks.after(nowMs) : nextMs;
    return [first, ...ticks.following(first, wanted - 1)].map((ms) => new Date(ms));
  }

  async #define(definitions: readonly PreparedSchedule[], isDeclaration: boolean): Promise<void> {
    if (definitions.length === 0) return;
    const { store } = this.#parts;
    const nowMs = await store.clockMs();
    const records = definitions.map(({ record, ticks }) => ({ ...record, nextMs: ticks.after(nowMs) }));
    const [refused] = await store.define(records, { isDeclaration });
    if (refused !== undefined) throw refusalError(refused);
  }

  /**
   * With the text of the declaration that was applied last, where that stands for the same arguments: a codec that encrypts
   * writes another text each time, and a declaration that has not changed must not undo what was changed since.
   */
  async #asDeclaredBefore(definition: PreparedSchedule): Promise<PreparedSchedule> {
    const { store, serializer } = this.#parts;
    const { record } = definition;
    const before = (await store.get(record.name))?.declaredInput ?? null;
    if (before === null || before === record.input) return definition;
    const [old, current] = await Promise.all(
      [before, record.input].map((text) => readStoredValue(text, { decode: (stored) => serializer.decode(stored) })),
    );
    const isSame = old?.readable === true && current?.readable === true && isDeepStrictEqual(old.value, current.value);
    return isSame ? { ...definition, record: { ...record, input: before } } : definition;
  }

  /** Until nobody else has changed it between reading and writing. Null: there is nothing to change. */
  async #change(
    name: string,
    changesOf: (found: StoredSchedule) => ScheduleRecordChanges | null | Promise<ScheduleRecordChanges | null>,
  ): Promise<void> {
    for (;;) {
      const found = await this.#find(name);
      const changes = await changesOf(found);
      if (changes === null) return;
      const answer = await this.#parts.store.update(name, found.revision, changes);
      switch (answer) {
        case 'done':
          return;
        case 'missing':
          throw notFound(name);
        case 'stale':
          break;
        case 'no-queue':
        case 'no-turns':
          throw refusalError({ name, queue: changes.queue ?? found.queue ?? '', refusal: answer });
      }
    }
  }

  async #find(name: string): Promise<StoredSchedule> {
    const found = await this.#parts.store.get(checkScheduleName(name));
    if (found === null) throw notFound(name);
    return found;
  }
}

/**
 * Checks of the schedules that a launch declares what can be checked without a database.
 * @throws InvalidArgumentError, InvalidCronError, WorkflowNotRegisteredError
 */
export function checkScheduleDeclarations(
  definitions: readonly AnySchedule[],
  resolve: SchedulesParts['resolve'],
): void {
  for (const definition of definitions) {
    checkDefinition(definition);
    resolve(definition.workflow);
    new Ticks(definition.cron, definition.timeZone ?? 'UTC').after(0);
  }
  if (new Set(definitions.map(({ name }) => name)).size < definitions.length) {
    throw new InvalidArgumentError('"schedules" declares one schedule twice.');
  }
}

/** From the first to before the end, without holding the process up. @throws InvalidArgumentError when there are too many. */
async function ticksBetween(runtime: Runtime, ticks: Ticks, fromMs: number, toMs: number): Promise<number[]> {
  const found: number[] = [];
  for (let tick = ticks.after(fromMs - 1); tick < toMs; tick = ticks.after(tick)) {
    if (found.length === MOST_BACKFILLED) {
      throw new InvalidArgumentError(
        `The range has more than ${String(MOST_BACKFILLED)} ticks. Backfill it in parts. Nothing was written.`,
      );
    }
    found.push(tick);
    if (found.length % COMPUTED_AT_ONCE === 0) await nextTurn(runtime);
  }
  return found;
}

function momentOf(value: unknown, what: string): number {
  const ms = value instanceof Date ? value.getTime() : NaN;
  if (Number.isNaN(ms)) throw new InvalidArgumentError(`${what} must be a valid Date.`);
  return ms;
}

function toSummary(schedule: StoredSchedule): ScheduleSummary {
  const { attributes, nextMs, lastFiredMs, createdMs, updatedMs } = schedule;
  return {
    name: schedule.name,
    workflow: schedule.workflowName,
    instance: schedule.instance,
    cron: schedule.cron,
    timeZone: schedule.timeZone,
    catchUp: schedule.catchUp,
    overlap: schedule.overlap,
    queue: schedule.queue,
    priority: schedule.priority,
    key: schedule.key,
    timeoutMs: schedule.timeoutMs,
    maxAttempts: schedule.maxAttempts,
    attributes: attributes === null ? null : (JSON.parse(attributes) as Record<string, unknown>),
    paused: schedule.paused,
    nextFireAt: schedule.paused ? null : new Date(nextMs),
    lastFiredAt: lastFiredMs === null ? null : new Date(lastFiredMs),
    lastWorkflowId: schedule.lastWorkflowId,
    skipped: schedule.skipped,
    createdAt: new Date(createdMs),
    updatedAt: new Date(updatedMs),
  };
}

async function withQueueErrors<Result>(action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof DatabaseError) || cause.sqlState !== NO_QUEUE_SQLSTATE) throw cause;
    throw new QueueNotFoundError(
      'The queue of the schedule is not there. Define it, or give the schedule another one.',
      {
        cause,
      },
    );
  }
}

function refusalError({ name, queue, refusal }: RefusedSchedule): Error {
  switch (refusal) {
    case 'no-queue':
      return new QueueNotFoundError(
        `There is no queue "${queue}" for schedule "${name}". Declare it in "queues" of launch, or define it with queues.define.`,
      );
    case 'no-turns':
      return new InvalidArgumentError(
        `The runs of schedule "${name}" are to wait for each other in queue "${queue}", which lets several of a key run: set its keyConcurrency to 1.`,
      );
  }
}

function notFound(name: string): ScheduleNotFoundError {
  return new ScheduleNotFoundError(
    `There is no schedule "${name}". Declare it in "schedules" of launch, or define it with schedules.define.`,
  );
}
