import { z } from 'zod';
import type {
  QueueChanges,
  QueueDefinition,
  QueueDeleteRequest,
  QueueDetails,
  QueueOperations,
  QueueSettings,
  RateLimit,
} from '../api/queue.js';
import { parseDuration } from '../engine/duration.js';
import { checkQueueName } from '../engine/prepare-enqueue.js';
import { describeIssues } from '../engine/describe-issues.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { QueueNotEmptyError, QueueNotFoundError } from '../errors/queue-errors.js';
import type { CountedQueue, QueueRecord, QueueStore, StoredQueue } from '../store/queue-store.js';
import { durationForm } from './duration-form.js';

const LARGEST_LIMIT = 2 ** 31 - 1;

const limit = z.int().min(1).max(LARGEST_LIMIT);
const rate = z.strictObject({ limit, period: durationForm });
const limits = {
  concurrency: limit.optional(),
  executorConcurrency: limit.optional(),
  keyConcurrency: limit.optional(),
  rateLimit: rate.optional(),
  keyRateLimit: rate.optional(),
};
const definitionSchema = z.strictObject({ name: z.string(), ...limits });
const changesSchema = z.strictObject({
  concurrency: limits.concurrency.nullable(),
  executorConcurrency: limits.executorConcurrency.nullable(),
  keyConcurrency: limits.keyConcurrency.nullable(),
  rateLimit: limits.rateLimit.nullable(),
  keyRateLimit: limits.keyRateLimit.nullable(),
});

const listSchema = z.strictObject({ counts: z.boolean().optional() });
const deleteSchema = z.strictObject({ workflows: z.enum(['refuse', 'release']).optional() });

/** {@link QueueOperations} on a {@link QueueStore}. */
export class Queues implements QueueOperations {
  readonly #store: QueueStore;

  constructor(store: QueueStore) {
    this.#store = store;
  }

  async define(definition: QueueDefinition): Promise<void> {
    await this.#store.define([toRecord(definition)], { isDeclaration: false });
  }

  async get(name: string): Promise<QueueDetails> {
    const found = await this.#store.get(checkQueueName(name));
    if (found === null) throw notFound(name);
    return toDetails(found);
  }

  list(): Promise<readonly QueueSettings[]>;
  list(options: { readonly counts: true }): Promise<readonly QueueDetails[]>;
  async list(options: { readonly counts?: boolean } = {}): Promise<readonly QueueSettings[]> {
    check(listSchema, options, 'The options of list are');
    if (options.counts === true) return (await this.#store.listCounted()).map(toDetails);
    return (await this.#store.list()).map(toSettings);
  }

  async update(name: string, changes: QueueChanges): Promise<void> {
    check(changesSchema, changes, 'The changes of a queue are');
    const { rateLimit, keyRateLimit, ...rest } = changes;
    if (rest.keyConcurrency !== undefined) checkTurns(name, rest.keyConcurrency);
    await this.#change(name, {
      ...rest,
      ...(rateLimit === undefined ? {} : { rateLimit: toRateRecord(rateLimit, 'rateLimit') }),
      ...(keyRateLimit === undefined ? {} : { keyRateLimit: toRateRecord(keyRateLimit, 'keyRateLimit') }),
    });
  }

  pause(name: string): Promise<void> {
    return this.#change(name, { paused: true });
  }

  resume(name: string): Promise<void> {
    return this.#change(name, { paused: false });
  }

  async delete(name: string, options: QueueDeleteRequest = {}): Promise<void> {
    check(deleteSchema, options, 'The options of delete are');
    const answer = await this.#store.delete(checkQueueName(name), { release: options.workflows === 'release' });
    switch (answer.kind) {
      case 'done':
        return;
      case 'missing':
        throw notFound(name);
      case 'not-empty':
        throw new QueueNotEmptyError(
          `${String(answer.workflows)} workflows in queue "${name}" have not ended. Cancel them, wait for them, or say workflows: 'release' to let them go on without limits.`,
          { workflows: answer.workflows },
        );
      case 'busy':
        throw new QueueNotEmptyError(`Queue "${name}" is in use: somebody enqueues into it, or keeps it locked.`, {
          workflows: 0,
        });
    }
  }

  async #change(name: string, changes: Parameters<QueueStore['update']>[1]): Promise<void> {
    if (!(await this.#store.update(checkQueueName(name), changes))) throw notFound(name);
  }
}

/**
 * Checks the queues that a launch declares.
 * @throws InvalidArgumentError
 */
export function checkDeclarations(definitions: readonly QueueDefinition[]): readonly QueueRecord[] {
  const records = definitions.map(toRecord);
  const names = new Set(records.map(({ name }) => name));
  if (names.size < records.length) throw new InvalidArgumentError('"queues" declares one queue twice.');
  return records;
}

/** The queue that schedules share: enqueue_runs makes it. */
const SCHEDULES_QUEUE = 'holdfast/schedules';

/** Runs of a schedule wait for each other there by that limit alone. */
function checkTurns(name: string, keyConcurrency: number | null | undefined): void {
  if (name !== SCHEDULES_QUEUE || keyConcurrency === 1) return;
  throw new InvalidArgumentError(
    `Queue "${SCHEDULES_QUEUE}" has keyConcurrency 1: runs of schedules with overlap 'queue' wait for each other by it.`,
  );
}

function toRecord(definition: QueueDefinition): QueueRecord {
  check(definitionSchema, definition, 'The definition of a queue is');
  const { name, concurrency, executorConcurrency, keyConcurrency, rateLimit, keyRateLimit } = definition;
  checkTurns(name, keyConcurrency);
  return {
    name: checkQueueName(name),
    concurrency: concurrency ?? null,
    executorConcurrency: executorConcurrency ?? null,
    keyConcurrency: keyConcurrency ?? null,
    rateLimit: toRateRecord(rateLimit ?? null, 'rateLimit'),
    keyRateLimit: toRateRecord(keyRateLimit ?? null, 'keyRateLimit'),
  };
}

function toRateRecord(rateLimit: RateLimit | null, what: string): QueueRecord['rateLimit'] {
  if (rateLimit === null) return null;
  const periodMs = parseDuration(rateLimit.period, `${what}.period`);
  if (periodMs < 1) throw new InvalidArgumentError(`${what}.period must be at least 1 ms.`);
  return { limit: rateLimit.limit, periodMs };
}

function toSettings(queue: StoredQueue): QueueSettings {
  const period = (rateLimit: QueueRecord['rateLimit']): QueueSettings['rateLimit'] =>
    rateLimit === null ? null : { limit: rateLimit.limit, period: rateLimit.periodMs };
  const { name, concurrency, executorConcurrency, keyConcurrency, paused, createdAt, updatedAt } = queue;
  return {
    name,
    concurrency,
    executorConcurrency,
    keyConcurrency,
    rateLimit: period(queue.rateLimit),
    keyRateLimit: period(queue.keyRateLimit),
    paused,
    createdAt,
    updatedAt,
  };
}

function toDetails(queue: CountedQueue): QueueDetails {
  const { waiting, delayed, running, blocked } = queue;
  return { ...toSettings(queue), waiting, delayed, running, blocked };
}

function check(schema: z.ZodType, value: unknown, what: string): void {
  const checked = schema.safeParse(value);
  if (checked.success) return;
  throw new InvalidArgumentError(`${what} not right (${describeIssues(checked.error)}). Nothing was written.`, {
    cause: checked.error,
  });
}

function notFound(name: string): QueueNotFoundError {
  return new QueueNotFoundError(
    `There is no queue "${name}". Declare it in "queues" of launch, or define it with queues.define.`,
  );
}
