import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { PoolEndedError } from '../../errors/database-errors.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import type { Refused } from '../store.js';
import { backoffMs, pause } from './backoff.js';
import { isHeldUp, isTransient } from './transient-errors.js';
import { MAX_BATCH_BYTES, MAX_BATCH_ROWS } from './write-batch.js';

/** Bytes of a row besides its payload, for the batch's cap. */
const ROW_OVERHEAD_BYTES = 200;

/** A function of the protocol that takes many requests at once, and how to speak with it. */
export interface RequestStatement<Request, Answer, Row extends SqlRow> {
  /** The same text always has the same name. */
  readonly name: string;
  readonly text: string;
  readonly columns: (requests: readonly Request[]) => SqlParameter[];
  /** One answer a request, in their order; undefined: to be asked again. */
  readonly answers: (requests: readonly Request[], rows: readonly Row[]) => readonly (Answer | undefined)[];
  readonly payloadBytes: (request: Request) => number;
  /** Requests of one line reach the database in the order of the calls, whatever holds one of them up. */
  readonly lineOf?: (request: Request) => string;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  /** In the order of the calls. */
  readonly place: number;
  readonly bytes: number;
  readonly answer: (answer: Answer | Refused) => void;
  readonly abandon: (cause: Error) => void;
}

/**
 * Collects what is asked from outside of workflows in this process and sends it as few statements. One is under way at a
 * time, so that calls that follow each other get their places in that order. A statement that the server refuses, or that an
 * open transaction holds up, is split until the item at fault is alone; a lost reply is no answer: the same requests, with
 * their nonces, are sent again.
 */
export class RequestWriter<Request, Answer, Row extends SqlRow> {
  readonly #driver: Driver;
  readonly #statement: RequestStatement<Request, Answer, Row>;
  readonly #closing = new AbortController();
  /** Lines of which a request is held up: the rest of them waits behind it. */
  readonly #heldUp = new Set<string>();
  #queue: Waiting<Request, Answer>[] = [];
  #isSending = false;
  #nextPlace = 0;

  constructor(driver: Driver, statement: RequestStatement<Request, Answer, Row>) {
    this.#driver = driver;
    this.#statement = statement;
  }

  submit(request: Request): Promise<Answer | Refused> {
    return new Promise((answer, abandon) => {
      this.#push(request, answer, abandon);
    });
  }

  /** One promise for many requests, which may be sent in several statements. `answered` is called for each as it is answered. */
  submitAll(
    requests: readonly Request[],
    answered: (answer: Answer | Refused, place: number) => void,
  ): Promise<readonly (Answer | Refused)[]> {
    return new Promise((resolve, reject) => {
      const answers = new Array<Answer | Refused>(requests.length);
      let open = requests.length;
      if (open === 0) resolve(answers);
      requests.forEach((request, place) => {
        const answer = (found: Answer | Refused): void => {
          answers[place] = found;
          answered(found, place);
          open -= 1;
          if (open === 0) resolve(answers);
        };
        this.#push(request, answer, reject);
      });
    });
  }

  #push(request: Request, answer: (answer: Answer | Refused) => void, abandon: (cause: Error) => void): void {
    if (this.#closing.signal.aborted) {
      abandon(new StoreClosedError('The store is closed: nothing was sent.'));
      return;
    }
    const bytes = ROW_OVERHEAD_BYTES + this.#statement.payloadBytes(request);
    this.#queue.push({ request, place: this.#nextPlace++, bytes, answer, abandon });
    this.#schedule();
  }

  close(): void {
    this.#closing.abort();
    this.#abandon(this.#queue.splice(0));
  }

  /** After the current round of the event loop, so that calls that are made together travel together. */
  #schedule(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setImmediate(() => void this.#sendAll());
  }

  async #sendAll(): Promise<void> {
    for (let batch = this.#takeBatch(); batch.length > 0; batch = this.#takeBatch()) await this.#send(batch);
    this.#isSending = false;
  }

  #takeBatch(): Waiting<Request, Answer>[] {
    const batch: Waiting<Request, Answer>[] = [];
    let bytes = 0;
    let isFull = false;
    this.#queue = this.#queue.filter((waiting) => {
      const isFree = !isFull && !this.#isHeldUp(waiting.request);
      isFull ||=
        isFree && (batch.length === MAX_BATCH_ROWS || (batch.length > 0 && bytes + waiting.bytes > MAX_BATCH_BYTES));
      if (!isFree || isFull) return true;
      bytes += waiting.bytes;
      batch.push(waiting);
      return false;
    });
    return batch;
  }

  #isHeldUp(request: Request): boolean {
    const line = this.#statement.lineOf?.(request);
    return line !== undefined && this.#heldUp.has(line);
  }

  async #send(batch: readonly Waiting<Request, Answer>[], isBeside = false): Promise<void> {
    const { name, text, columns, answers } = this.#statement;
    const requests = batch.map(({ request }) => request);
    for (let attempt = 1; !this.#closing.signal.aborted; attempt++) {
      try {
        const rows = await this.#driver.query<Row>(text, columns(requests), { prepare: name });
        const found = answers(requests, rows);
        batch.forEach((waiting, index) => {
          const answer = found[index];
          if (answer === undefined) this.#queue.push(waiting);
          else waiting.answer(answer);
        });
        return;
      } catch (error) {
        const [first] = batch;
        if (first === undefined) return;
        if (error instanceof PoolEndedError) {
          this.#abandon(batch, error);
          return;
        }
        if (batch.length > 1 && (!isTransient(error) || isHeldUp(error))) {
          await this.#split(batch);
          return;
        }
        if (isHeldUp(error) && !isBeside) {
          // From now on beside the others, which do not wait for it.
          void this.#sendBeside(first);
          return;
        }
        if (!isTransient(error)) {
          first.answer({ kind: 'refused', error: error instanceof Error ? error : new Error(String(error)) });
          return;
        }
        await pause(backoffMs(attempt), this.#closing.signal);
      }
    }
    this.#abandon(batch);
  }

  async #split(batch: readonly Waiting<Request, Answer>[]): Promise<void> {
    const middle = batch.length >> 1;
    await this.#send(batch.slice(0, middle));
    const rest = batch.slice(middle);
    const behind = rest.filter(({ request }) => this.#isHeldUp(request));
    if (behind.length > 0) this.#queue = [...behind, ...this.#queue].sort((one, other) => one.place - other.place);
    const free = rest.filter(({ request }) => !this.#isHeldUp(request));
    if (free.length > 0) await this.#send(free);
  }

  async #sendBeside(waiting: Waiting<Request, Answer>): Promise<void> {
    const line = this.#statement.lineOf?.(waiting.request);
    if (line !== undefined) this.#heldUp.add(line);
    await this.#send([waiting], true);
    if (line !== undefined) this.#heldUp.delete(line);
    if (this.#queue.length > 0) this.#schedule();
  }

  #abandon(
    batch: readonly Waiting<Request, Answer>[],
    cause: Error = new StoreClosedError('The store was closed before this call was answered: its effect is unknown.'),
  ): void {
    for (const { abandon } of batch) abandon(cause);
  }
}
