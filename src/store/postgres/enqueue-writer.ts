import { randomUUID } from 'node:crypto';
import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import type { EnqueueAnswer } from '../queue-store.js';
import type { EnqueueRequest } from '../store.js';
import { backoffMs, pause } from './backoff.js';
import { isHeldUp, isTransient } from './transient-errors.js';
import { MAX_BATCH_BYTES, MAX_BATCH_ROWS } from './write-batch.js';

/** Bytes of a row besides its payload, for the batch's cap. */
const ROW_OVERHEAD_BYTES = 200;

const TYPES = [
  'text[]', 'uuid[]', 'text[]', 'text[]', 'text[]', 'int4[]', 'int8[]', 'text[]', 'text[]', 'int4[]', 'text[]', 'int8[]',
  'text[]', 'int8[]',
]; // prettier-ignore

/** A request with the nonce by which a retry recognises its own earlier commit. */
export interface NoncedRequest {
  readonly request: EnqueueRequest;
  readonly nonce: string;
}

interface Waiting extends NoncedRequest {
  readonly bytes: number;
  readonly answer: (answer: EnqueueAnswer) => void;
  readonly abandon: (cause: Error) => void;
}

/** A row of what enqueue_batch and enqueue_in_transaction return, by whatever library it was read. */
export interface EnqueueRefusalRow extends SqlRow {
  /** A text where the caller's client has parsers of its own. */
  readonly item: number | string;
  readonly answer: 'no_queue' | 'deduplicated' | 'exists' | 'missing';
  readonly detail: string | null;
}

/**
 * Collects what is enqueued in this process and sends it as few statements. One is under way at a time, so that calls that
 * follow each other get their places in that order. A statement that the server refuses, or that an open transaction holds
 * up, is split until the item at fault is alone; a lost reply is no answer: the same nonces are sent again.
 */
export class EnqueueWriter {
  readonly #driver: Driver;
  readonly #text: string;
  readonly #closing = new AbortController();
  #queue: Waiting[] = [];
  #isSending = false;

  constructor(driver: Driver, schema: string) {
    this.#driver = driver;
    const placeholders = TYPES.map((type, index) => `$${String(index + 1)}::${type}`).join(', ');
    this.#text = `SELECT item, answer, found_detail AS detail FROM "${schema}".enqueue_batch(${placeholders})`;
  }

  enqueue(request: EnqueueRequest): Promise<EnqueueAnswer> {
    return new Promise((answer, abandon) => {
      if (this.#closing.signal.aborted) {
        abandon(new StoreClosedError('The store is closed: this workflow was not enqueued.'));
        return;
      }
      const bytes = ROW_OVERHEAD_BYTES + Buffer.byteLength(request.input) + Buffer.byteLength(request.attributes ?? '');
      this.#queue.push({ request, nonce: randomUUID(), bytes, answer, abandon });
      if (this.#isSending) return;
      this.#isSending = true;
      // After the current round of the event loop, so that calls that are made together travel together.
      setImmediate(() => void this.#sendAll());
    });
  }

  close(): void {
    this.#closing.abort();
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) await this.#send(this.#takeBatch());
    this.#isSending = false;
  }

  #takeBatch(): Waiting[] {
    let rows = 0;
    let bytes = 0;
    for (const waiting of this.#queue) {
      bytes += waiting.bytes;
      if (rows === MAX_BATCH_ROWS || (rows > 0 && bytes > MAX_BATCH_BYTES)) break;
      rows += 1;
    }
    return this.#queue.splice(0, rows);
  }

  async #send(batch: readonly Waiting[], isBeside = false): Promise<void> {
    for (let attempt = 1; !this.#closing.signal.aborted; attempt++) {
      try {
        const rows = await this.#driver.query<EnqueueRefusalRow>(this.#text, columnsOf(batch), {
          prepare: 'holdfast_enqueue_batch',
        });
        const answers = answersOf(batch, rows);
        batch.forEach((waiting, index) => {
          const answer = answers[index];
          if (answer === undefined) this.#queue.push(waiting);
          else waiting.answer(answer);
        });
        return;
      } catch (error) {
        const [first] = batch;
        if (batch.length > 1 && (!isTransient(error) || isHeldUp(error))) {
          const middle = batch.length >> 1;
          await this.#send(batch.slice(0, middle));
          await this.#send(batch.slice(middle));
          return;
        }
        if (isHeldUp(error) && !isBeside && first !== undefined) {
          // From now on beside the others, which do not wait for it.
          void this.#send([first], true);
          return;
        }
        if (!isTransient(error)) {
          first?.answer({ kind: 'refused', error: error instanceof Error ? error : new Error(String(error)) });
          return;
        }
        await pause(backoffMs(attempt), this.#closing.signal);
      }
    }
    const closed = new StoreClosedError('The store was closed before this call was answered: its effect is unknown.');
    for (const { abandon } of batch) abandon(closed);
  }
}

function columnsOf(batch: readonly NoncedRequest[]): SqlParameter[] {
  const column = (pick: (request: EnqueueRequest) => string | number | null): SqlParameter =>
    batch.map(({ request }) => pick(request));
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
  ];
}

/** The same for enqueue_in_transaction: one text that any client library can bind. */
export function jsonOf(batch: readonly NoncedRequest[]): string {
  return JSON.stringify(
    batch.map(({ request: { deduplication, ...request }, nonce }) => ({
      ...request,
      nonce,
      deduplicationId: deduplication?.id ?? null,
      windowMs: deduplication?.windowMs ?? null,
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
    case 'exists':
      return { kind: 'exists', name: detail };
    case 'missing':
      return undefined;
  }
}
