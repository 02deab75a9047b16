import { randomUUID } from 'node:crypto';
import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import type {
  CountedQueue,
  EnqueueAnswer,
  QueueDeletion,
  QueueRecord,
  QueueStore,
  StatementRunner,
  StoredQueue,
} from '../queue-store.js';
import type { EnqueueRequest } from '../store.js';
import { askAgain } from './ask-again.js';
import { backoffMs, pause } from './backoff.js';
import {
  answersOf,
  enqueueStatement,
  jsonOf,
  payloadBytes,
  type EnqueueRefusalRow,
  type NoncedRequest,
} from './enqueue-statement.js';
import { RequestWriter } from './request-writer.js';
import { WorkAnnouncer } from './work-announcer.js';

/** How often a queue that somebody is just using is tried to be deleted: over about two seconds. */
const DELETE_ATTEMPTS = 10;

/**
 * Payload that one statement in a caller's transaction carries, in bytes, unless a single workflow has more: as one text of JSON it
 * must stay far below what a string of JavaScript, and a value of PostgreSQL, can hold.
 */
const MAX_STATEMENT_BYTES = 8 * 1024 * 1024;

const QUEUE_COLUMNS = `
  (l.definition).name, (l.definition).concurrency, (l.definition).executor_concurrency, (l.definition).key_concurrency,
  (l.definition).rate_limit, (l.definition).rate_period_ms::float8 AS rate_period_ms,
  (l.definition).key_rate_limit, (l.definition).key_rate_period_ms::float8 AS key_rate_period_ms, (l.definition).paused,
  (extract(epoch FROM (l.definition).created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM (l.definition).updated_at) * 1000)::float8 AS updated_at,
  l.waiting::float8 AS waiting, l.delayed::float8 AS delayed, l.running::float8 AS running, l.blocked::float8 AS blocked`;

interface QueueRow extends SqlRow {
  readonly name: string;
  readonly concurrency: number | null;
  readonly executor_concurrency: number | null;
  readonly key_concurrency: number | null;
  readonly rate_limit: number | null;
  readonly rate_period_ms: number | null;
  readonly key_rate_limit: number | null;
  readonly key_rate_period_ms: number | null;
  readonly paused: boolean;
  readonly created_at: number;
  readonly updated_at: number;
  readonly waiting: number;
  readonly delayed: number;
  readonly running: number;
  readonly blocked: number;
}

interface DeletionRow extends SqlRow {
  readonly result: 'done' | 'missing' | 'not_empty' | 'busy';
  readonly workflows: number | null;
}

export interface PostgresQueueStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
}

/** The queue store on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresQueueStore implements QueueStore {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #writer: RequestWriter<NoncedRequest, EnqueueAnswer, EnqueueRefusalRow>;
  readonly #announcer: WorkAnnouncer;
  readonly #closing = new AbortController();

  constructor({ driver, schema }: PostgresQueueStoreOptions) {
    this.#driver = driver;
    this.#schema = schema;
    this.#writer = new RequestWriter(driver, enqueueStatement(schema));
    this.#announcer = new WorkAnnouncer(driver, `${schema}.work`);
  }

  enqueue(requests: readonly EnqueueRequest[]): Promise<readonly EnqueueAnswer[]> {
    return this.#writer.submitAll(
      requests.map((request) => ({ request, nonce: randomUUID() })),
      (answer, place) => {
        // At once, so that the first ones are claimed while the others are enqueued.
        if (answer.kind === 'enqueued' && requests[place]?.delayMs === 0) this.#announcer.announce();
      },
    );
  }

  async enqueueIn(
    transaction: StatementRunner,
    requests: readonly EnqueueRequest[],
  ): Promise<readonly EnqueueAnswer[]> {
    const text = `SELECT item, answer, found_detail AS detail FROM ${this.#call('enqueue_in_transaction')}($1::text::json)`;
    const answers = new Array<EnqueueAnswer>(requests.length);
    let open = requests.map((request, place) => ({ request, place, nonce: randomUUID() }));
    while (open.length > 0) {
      const part = open.slice(0, countWithin(open));
      const found = answersOf(part, (await transaction(text, jsonOf(part))) as readonly EnqueueRefusalRow[]);
      const again = part.filter(({ place }, index) => {
        const answer = found[index];
        if (answer !== undefined) answers[place] = answer;
        return answer === undefined;
      });
      open = [...again, ...open.slice(part.length)];
    }
    return answers;
  }

  async define(queues: readonly QueueRecord[], { isDeclaration }: { readonly isDeclaration: boolean }): Promise<void> {
    const json = JSON.stringify(queues.map(toColumns));
    await this.#ask(`SELECT ${this.#call('define_queues')}($1::text::jsonb, $2::bool)`, [json, isDeclaration]);
  }

  async update(name: string, changes: Partial<QueueRecord> & { readonly paused?: boolean }): Promise<boolean> {
    const [row] = await this.#ask<{ found: boolean }>(
      `SELECT ${this.#call('update_queue')}($1::text, $2::text::jsonb) AS found`,
      [name, JSON.stringify(toColumns(changes))],
    );
    return row?.found ?? false;
  }

  async list(): Promise<readonly StoredQueue[]> {
    return (await this.#read(null, false)).map(toStored);
  }

  async get(name: string): Promise<CountedQueue | null> {
    const [row] = await this.#read(name, true);
    return row === undefined ? null : toCounted(row);
  }

  async listCounted(): Promise<readonly CountedQueue[]> {
    return (await this.#read(null, true)).map(toCounted);
  }

  async delete(name: string, { release }: { readonly release: boolean }): Promise<QueueDeletion> {
    let lostReplies = 0;
    const onLost = (): void => {
      lostReplies += 1;
    };
    for (let attempt = 1; ; attempt++) {
      const [row] = await this.#ask<DeletionRow>(
        `SELECT result, workflows::float8 AS workflows FROM ${this.#call('delete_queue')}($1::text, $2::bool)`,
        [name, release],
        onLost,
      );
      switch (row?.result) {
        case undefined:
          throw new TypeError('delete_queue returned no row.');
        case 'done':
          return { kind: 'done' };
        case 'missing':
          // The try whose reply was lost has deleted it.
          return { kind: lostReplies > 0 ? 'done' : 'missing' };
        case 'not_empty':
          return { kind: 'not-empty', workflows: row.workflows ?? 0 };
        case 'busy':
          if (attempt === DELETE_ATTEMPTS) return { kind: 'busy' };
          await pause(backoffMs(attempt), this.#closing.signal);
      }
    }
  }

  async clearDeduplication(limit: number): Promise<void> {
    await this.#driver.query(`SELECT ${this.#call('clear_deduplication')}($1::int4)`, [limit], {
      prepare: 'holdfast_clear_deduplication',
    });
  }

  close(): void {
    this.#closing.abort();
    this.#announcer.close();
    this.#writer.close();
  }

  #read(name: string | null, counts: boolean): Promise<readonly QueueRow[]> {
    const text = `SELECT ${QUEUE_COLUMNS} FROM ${this.#call('list_queues')}($1::text, $2::bool) l`;
    return this.#ask<QueueRow>(text, [name, counts]);
  }

  #ask<Row extends SqlRow>(
    text: string,
    parameters: readonly SqlParameter[],
    onLost?: () => void,
  ): Promise<readonly Row[]> {
    return askAgain<Row>(this.#driver, this.#closing.signal, text, parameters, onLost === undefined ? {} : { onLost });
  }

  #call(functionName: string): string {
    return `"${this.#schema}".${functionName}`;
  }
}

/** How many of them go in one statement; at least one. */
function countWithin(requests: readonly NoncedRequest[]): number {
  let bytes = 0;
  const end = requests.findIndex((request) => (bytes += payloadBytes(request)) > MAX_STATEMENT_BYTES);
  return end === -1 ? requests.length : Math.max(1, end);
}

/** Keys that are missing stay missing: they are not to be changed. */
function toColumns(queue: Partial<QueueRecord> & { readonly paused?: boolean }): Record<string, unknown> {
  const { name, concurrency, executorConcurrency, keyConcurrency, rateLimit, keyRateLimit, paused } = queue;
  return {
    name,
    concurrency,
    executor_concurrency: executorConcurrency,
    key_concurrency: keyConcurrency,
    rate_limit: rateLimit === undefined ? undefined : (rateLimit?.limit ?? null),
    rate_period_ms: rateLimit === undefined ? undefined : (rateLimit?.periodMs ?? null),
    key_rate_limit: keyRateLimit === undefined ? undefined : (keyRateLimit?.limit ?? null),
    key_rate_period_ms: keyRateLimit === undefined ? undefined : (keyRateLimit?.periodMs ?? null),
    paused,
  };
}

function toStored(row: QueueRow): StoredQueue {
  return {
    name: row.name,
    concurrency: row.concurrency,
    executorConcurrency: row.executor_concurrency,
    keyConcurrency: row.key_concurrency,
    rateLimit: toRate(row.rate_limit, row.rate_period_ms),
    keyRateLimit: toRate(row.key_rate_limit, row.key_rate_period_ms),
    paused: row.paused,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}

function toCounted(row: QueueRow): CountedQueue {
  const { waiting, delayed, running, blocked } = row;
  return { ...toStored(row), waiting, delayed, running, blocked };
}

function toRate(limit: number | null, periodMs: number | null): QueueRecord['rateLimit'] {
  return limit === null || periodMs === null ? null : { limit, periodMs };
}
