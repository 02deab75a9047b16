import type { SqlParameter, SqlRow } from '../../drivers/driver.js';
import type { EnqueueAnswer } from '../queue-store.js';
import type { EnqueueRequest } from '../store.js';
import { columnOf } from './column.js';
import type { RequestStatement } from './request-writer.js';

const TYPES = [
  'text[]', 'uuid[]', 'text[]', 'text[]', 'text[]', 'int4[]', 'int8[]', 'text[]', 'text[]', 'int4[]', 'text[]', 'int8[]',
  'text[]', 'int8[]', 'text[]', 'text[]', 'int8[]',
]; // prettier-ignore

/** A request with the nonce by which a retry recognises its own earlier commit. */
export interface NoncedRequest {
  readonly request: EnqueueRequest;
  readonly nonce: string;
}

/** A row of what enqueue_batch and enqueue_in_transaction return, by whatever library it was read. */
export interface EnqueueRefusalRow extends SqlRow {
  /** A text where the caller's client has parsers of its own. */
  readonly item: number | string;
  readonly answer: 'no_queue' | 'deduplicated' | 'debounced' | 'exists' | 'missing';
  readonly detail: string | null;
}

/** What is enqueued from outside of workflows, many at once. */
export function enqueueStatement(schema: string): RequestStatement<NoncedRequest, EnqueueAnswer, EnqueueRefusalRow> {
  const placeholders = TYPES.map((type, index) => `$${String(index + 1)}::${type}`).join(', ');
  return {
    name: 'holdfast_enqueue_batch',
    text: `SELECT item, answer, found_detail AS detail FROM "${schema}".enqueue_batch(${placeholders})`,
    columns: columnsOf,
    answers: answersOf,
    payloadBytes,
  };
}

export function payloadBytes({ request }: NoncedRequest): number {
  return Buffer.byteLength(request.input) + Buffer.byteLength(request.attributes ?? '');
}

function columnsOf(batch: readonly NoncedRequest[]): SqlParameter[] {
  const column = (pick: (request: EnqueueRequest) => string | number | null): SqlParameter =>
    columnOf(batch, ({ request }) => pick(request));
  return [
    column(({ workflowId }) => workflowId),
    batch.map(({ nonce }) => nonce),
    column(({ name }) => name),
    column(({ instance }) => instance),
    column(({ input }) => input),
    column(({ maxAttempts }) => maxAttempts),
    column(({ timeoutMs }) => timeoutMs),
    column(({ attributes }) => attributes),
    column(({ queue }) => queue),
    column(({ priority }) => priority),
    column(({ key }) => key),
    column(({ delayMs }) => delayMs),
    column(({ deduplication }) => deduplication?.id ?? null),
    column(({ deduplication }) => deduplication?.windowMs ?? null),
    column(({ deduplication }) => deduplication?.cancelledError ?? null),
    column(({ debounce }) => debounce?.key ?? null),
    column(({ debounce }) => debounce?.maxWaitMs ?? null),
  ];
}

/** The same for enqueue_in_transaction: one text that any client library can bind. */
export function jsonOf(batch: readonly NoncedRequest[]): string {
  return JSON.stringify(
    batch.map(({ request: { deduplication, debounce, ...request }, nonce }) => ({
      ...request,
      nonce,
      deduplicationId: deduplication?.id ?? null,
      windowMs: deduplication?.windowMs ?? null,
      cancelledError: deduplication?.cancelledError ?? null,
      debounceKey: debounce?.key ?? null,
      maxWaitMs: debounce?.maxWaitMs ?? null,
    })),
  );
}

/** One answer a request, in their order; undefined: to be asked again. */
export function answersOf(
  batch: readonly NoncedRequest[],
  rows: readonly EnqueueRefusalRow[],
): (EnqueueAnswer | undefined)[] {
  const answers = batch.map((): EnqueueAnswer | undefined => ({ kind: 'enqueued' }));
  for (const { item, answer, detail } of rows) answers[Number(item) - 1] = answerOf(answer, detail ?? '');
  return answers;
}

function answerOf(answer: EnqueueRefusalRow['answer'], detail: string): EnqueueAnswer | undefined {
  switch (answer) {
    case 'no_queue':
      return { kind: 'no-queue', queue: detail };
    case 'deduplicated':
      return { kind: 'deduplicated', holder: detail };
    case 'debounced':
      return { kind: 'debounced', workflowId: detail };
    case 'exists':
      return { kind: 'exists', name: detail };
    case 'missing':
      return undefined;
  }
}
