import type { AnySchedule, CatchUpPolicy, OverlapPolicy, ScheduleChanges } from '../api/schedule.js';
import type { StartOptions } from '../api/workflow-options.js';
import { workflowDefinition, type WorkflowDefinition } from '../engine/definitions.js';
import { prepareEnqueue } from '../engine/prepare-enqueue.js';
import { prepareStart } from '../engine/prepare-start.js';
import type { Serializer } from '../engine/serializer.js';
import type { Soon } from '../engine/soon.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { ScheduleRecord, ScheduleRecordChanges, StoredSchedule } from '../store/schedule-store.js';
import type { EnqueueRequest, WorkflowStart } from '../store/store.js';
import { checkChanges, checkDefinition } from './schedule-form.js';
import { Ticks } from './ticks.js';

/** Stands where an ID is checked: each run gets one of its own. */
const ANY_ID = 'schedule';

export interface PreparationParts {
  readonly serializer: Serializer;
  /** What a function or a name stands for. @throws WorkflowNotRegisteredError */
  readonly resolve: (workflow: AnySchedule['workflow']) => WorkflowDefinition;
  /** Checks and encodes what a workflow is to be started with. */
  readonly prepare: (
    definition: WorkflowDefinition,
    args: readonly unknown[],
    options: StartOptions,
    workflowId: string,
  ) => Soon<WorkflowStart>;
}

/** A definition that needs only the clock to be stored. */
export interface PreparedSchedule {
  readonly ticks: Ticks;
  readonly record: Omit<ScheduleRecord, 'nextMs'>;
}

/**
 * Checks a definition, and encodes it. Needs no database.
 * @throws InvalidArgumentError, InvalidCronError, WorkflowNotRegisteredError, SchemaViolationError, ValueNotSerializableError,
 *   PayloadTooLargeError
 */
export async function prepareSchedule(parts: PreparationParts, definition: AnySchedule): Promise<PreparedSchedule> {
  checkDefinition(definition);
  const { name, workflow, cron, timeZone = 'UTC', catchUp = 'last', overlap = 'skip', args = [], ...run } = definition;
  checkPolicies(catchUp, overlap, run.key ?? null);
  const { queue, key, priority, ...options } = run;
  const start = await parts.prepare(parts.resolve(workflow), args, options, ANY_ID);
  const request = await prepareEnqueue(start, queue, given({ key, priority }), parts.serializer);
  return {
    ticks: new Ticks(cron, timeZone),
    record: {
      name,
      workflowName: request.name,
      instance: request.instance,
      input: request.input,
      ...optionsOf(request),
      cron,
      timeZone,
      catchUp,
      overlap,
    },
  };
}

/** Checks changes together with what stays. @throws what {@link prepareSchedule} throws. */
export async function prepareChanges(
  parts: PreparationParts,
  found: StoredSchedule,
  changes: ScheduleChanges,
): Promise<ScheduleRecordChanges> {
  checkChanges(changes);
  const { cron = found.cron, timeZone = found.timeZone, catchUp = found.catchUp, overlap = found.overlap } = changes;
  const { args, timeout, maxAttempts, attributes } = changes;
  const queue = changes.queue === undefined ? found.queue : changes.queue;
  const key = changes.key === undefined ? found.key : changes.key;
  const priority = changes.priority ?? found.priority;
  checkPolicies(catchUp, overlap, key);
  const ticks = new Ticks(cron, timeZone);

  // Without its schema, and for the options alone: arguments that stay were checked when they came.
  const bare = workflowDefinition(found.workflowName, () => undefined, {});
  const options = given({ timeout: timeout ?? undefined, maxAttempts, attributes: attributes ?? undefined });
  const request = await prepareEnqueue(
    await prepareStart(bare, [], options, ANY_ID, parts.serializer),
    queue ?? undefined,
    given({ key: key ?? undefined, priority: priority === 0 ? undefined : priority }),
    parts.serializer,
  );
  const checked = optionsOf(request);
  return {
    cron,
    timeZone,
    catchUp,
    overlap,
    queue: checked.queue,
    key: checked.key,
    priority: checked.priority,
    ...(args === undefined ? {} : { input: await encodeArguments(parts, found, args) }),
    ...(timeout === undefined ? {} : { timeoutMs: checked.timeoutMs }),
    ...(maxAttempts === undefined ? {} : { maxAttempts: checked.maxAttempts }),
    ...(attributes === undefined ? {} : { attributes: checked.attributes }),
    ...(cron === found.cron && timeZone === found.timeZone ? {} : { nextMs: ticks.after(found.nowMs) }),
  };
}

async function encodeArguments(
  parts: PreparationParts,
  { workflowName, instance }: StoredSchedule,
  args: readonly unknown[],
): Promise<string> {
  const options = instance === null ? {} : { instance };
  return (await parts.prepare(parts.resolve(workflowName), args, options, ANY_ID)).input;
}

function optionsOf(
  request: EnqueueRequest,
): Pick<ScheduleRecord, 'maxAttempts' | 'timeoutMs' | 'attributes' | 'queue' | 'priority' | 'key'> {
  const { maxAttempts, timeoutMs, attributes, queue, priority, key } = request;
  return { maxAttempts, timeoutMs, attributes, queue, priority, key };
}

function checkPolicies(catchUp: CatchUpPolicy, overlap: OverlapPolicy, key: string | null): void {
  if (catchUp === 'all' && overlap !== 'queue') {
    throw new InvalidArgumentError(
      "catchUp 'all' needs overlap 'queue': the ticks that are made up for would displace each other.",
    );
  }
  if (key !== null && overlap === 'queue') {
    throw new InvalidArgumentError(
      "A key does not go with overlap 'queue', where the schedule's name is the key of its runs.",
    );
  }
}

/** Without what is undefined. */
function given<Options extends object>(
  options: Options,
): { [Name in keyof Options]?: Exclude<Options[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Options]?: Exclude<Options[Name], undefined>;
  };
}
