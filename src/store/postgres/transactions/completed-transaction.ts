import { TransactionEndedError } from '../../../errors/transaction-errors.js';
import type { EventToAdd } from '../../event-to-add.js';
import type { Denied, Ownership, StepRecord } from '../../store.js';
import type { TransactionAnswer, TransactionJob, TransactionLookup } from '../../transaction-store.js';
import { BodyRun } from './body-run.js';
import type { CompletionKey, Completions, KnownCompletion } from './completions.js';
import { ask } from './data-sources.js';
import type { SourceOptions, SourceTransaction, TransactionSource } from './source.js';
import { isPassing, sqlStateOf } from './sql-state.js';
import type { TryEnd } from './transaction-tries.js';

const UNIQUE_VIOLATION = '23505';

export interface CompletedTransactionOptions {
  readonly source: TransactionSource;
  readonly completions: Completions;
  readonly keyOf: (ownership: Ownership, seq: number) => Promise<CompletionKey | undefined>;
  readonly verify: (ownership: Ownership) => Promise<boolean>;
}

/**
 * Transactions in a database that is not Holdfast's. The completion that commits with the body decides the call; the record in
 * Holdfast's database follows it. Whoever finds a call without a record looks for its completion first.
 */
export class CompletedTransactions {
  readonly #options: CompletedTransactionOptions;
  /** Owners that have announced themselves. Goes with the execution. */
  readonly #entered = new WeakSet<Ownership>();

  constructor(options: CompletedTransactionOptions) {
    this.#options = options;
  }

  async oneTry(job: TransactionJob, begin: SourceOptions): Promise<TryEnd> {
    const { source, completions, verify } = this.#options;
    const key = await this.#options.keyOf(job.ownership, job.seq);
    if (key === undefined) return LOST;
    const body = new BodyRun(job);
    try {
      if (!(await this.#enter(job.ownership, key))) return LOST;
      const answer = await source.run(begin, async (open): Promise<TransactionAnswer> => {
        const known = await completions.begin(open, key);
        if (known.answer !== 'run') return answerOf(known, job);
        const record = await body.run(open);
        // Another database cannot check ownership in the statement that writes; this leaves as little between them as can be.
        if (!(await verify(job.ownership))) throw new Fenced();
        await this.#record(open, key, record);
        return { kind: 'to-record', record, isOwn: true };
      });
      return { kind: 'settled', answer };
    } catch (error) {
      if (error instanceof Fenced) return LOST;
      // Somebody else's completion has been committed: the next try finds it.
      if (error instanceof Decided) return { kind: 'again', because: 'conflict', error: error.cause };
      return body.endOf(error);
    }
  }

  /**
   * Decides that a call has failed, unless it is decided otherwise: an execution that was replaced must not commit the body
   * after its failure is on record.
   */
  async decideFailure(ownership: Ownership, record: StepRecord): Promise<TryEnd> {
    const { source, completions } = this.#options;
    const key = await this.#options.keyOf(ownership, record.seq);
    if (key === undefined) return LOST;
    try {
      if (!(await this.#enter(ownership, key))) return LOST;
      const known = await ask(source, (open) => completions.begin(open, key));
      if (known.answer !== 'run') return { kind: 'settled', answer: answerOf(known, record) };
      await source.run(
        { isolation: 'read committed', readOnly: false, idleTimeoutMs: DECIDING_IDLE_TIMEOUT_MS },
        (open) => this.#record(open, key, record),
      );
      return { kind: 'settled', answer: { kind: 'to-record', record, isOwn: true } };
    } catch (error) {
      if (error instanceof Decided) return { kind: 'again', because: 'conflict', error: error.cause };
      if (isPassing(error)) return { kind: 'again', because: 'unavailable', error };
      return { kind: 'settled', answer: { kind: 'failed', error } };
    }
  }

  /** What is decided of a call. Earlier owners are refused from then on, and waited for. */
  async lookUp(ownership: Ownership, call: { readonly seq: number; readonly name: string }): Promise<LookupEnd> {
    const { source, completions } = this.#options;
    const key = await this.#options.keyOf(ownership, call.seq);
    if (key === undefined) return LOST;
    try {
      if (!(await this.#enter(ownership, key))) return LOST;
      const known = await ask(source, (open) => completions.begin(open, key));
      if (known.answer === 'fenced') return LOST;
      const answer: TransactionLookup =
        known.answer === 'run' ? { kind: 'nothing' } : { kind: 'decided', record: recordOf(known, call) };
      return { kind: 'settled', answer };
    } catch (error) {
      if (isPassing(error)) return { kind: 'again', because: 'unavailable', error };
      return { kind: 'settled', answer: { kind: 'failed', error } };
    }
  }

  async #enter(ownership: Ownership, key: CompletionKey): Promise<boolean> {
    if (this.#entered.has(ownership)) return true;
    if (!(await ask(this.#options.source, (open) => this.#options.completions.enter(open, key)))) return false;
    this.#entered.add(ownership);
    return true;
  }

  async #record(open: SourceTransaction, key: CompletionKey, record: StepRecord): Promise<void> {
    let isRecorded: boolean;
    try {
      isRecorded = await this.#options.completions.record(open, key, record);
    } catch (error) {
      if (sqlStateOf(error) === UNIQUE_VIOLATION) throw new Decided(error);
      throw error;
    }
    if (!isRecorded) {
      throw new TransactionEndedError(
        'The body ended the transaction that it was given: what it committed has no record. Leave COMMIT and ROLLBACK to Holdfast.',
      );
    }
  }
}

const DECIDING_IDLE_TIMEOUT_MS = 10_000;
const LOST: TryEnd<Denied> = { kind: 'settled', answer: { kind: 'lost' } };

type LookupEnd = TryEnd<TransactionLookup>;

class Fenced extends Error {
  override readonly name = 'Fenced';
}

class Decided extends Error {
  override readonly name = 'Decided';

  constructor(cause: unknown) {
    super('The call was decided meanwhile.', { cause });
  }
}

function answerOf(
  known: Exclude<KnownCompletion, { readonly answer: 'run' }>,
  call: { readonly seq: number; readonly name: string },
): TransactionAnswer {
  if (known.answer === 'fenced') return { kind: 'lost' };
  return { kind: 'to-record', record: recordOf(known, call), isOwn: false };
}

function recordOf(
  { output, error, events }: Extract<KnownCompletion, { readonly answer: 'done' }>,
  { seq, name }: { readonly seq: number; readonly name: string },
): StepRecord {
  return {
    seq,
    name,
    kind: 'transaction',
    output,
    error,
    attempts: 1,
    attemptErrors: null,
    childId: null,
    elapsedMs: 0,
    events: JSON.parse(events ?? '[]') as readonly EventToAdd[],
  };
}
