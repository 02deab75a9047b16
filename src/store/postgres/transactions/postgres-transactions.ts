import { randomUUID } from 'node:crypto';
import type { Driver } from '../../../drivers/driver.js';
import { PoolEndedError } from '../../../errors/database-errors.js';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { DataSourceError } from '../../../errors/transaction-errors.js';
import type { Ownership } from '../../store.js';
import type {
  TransactionAnswer,
  TransactionFailure,
  TransactionJob,
  TransactionLookup,
  TransactionStore,
} from '../../transaction-store.js';
import { askAgain } from '../ask-again.js';
import { BodyRun } from './body-run.js';
import { CompletedTransactions } from './completed-transaction.js';
import type { CompletionKey } from './completions.js';
import type { OpenDataSource } from './data-sources.js';
import { Generations } from './generations.js';
import {
  canConclude,
  checkpointIn,
  checkpointStatements,
  concludeIn,
  NotRecorded,
  type CheckpointStatements,
} from './joined-transaction.js';
import { Slots } from './slots.js';
import type { SourceOptions, TransactionSource } from './source.js';
import { tryUntilSettled, type TryEnd } from './transaction-tries.js';

/**
 * How long a transaction whose body has returned waits for the execution's turn, in milliseconds, before it begins anew with the
 * turn in hand. It holds a connection meanwhile, and the write that has the turn may be waiting for one: without a bound, a pool
 * that is used up would wait for itself.
 */
const TURN_WAIT_MS = 1_000;

/** The turns of executions, as the writer keeps them. */
export interface Turns {
  takeTurn(token: string, waitMs: number): (() => void) | Promise<(() => void) | undefined>;
}

export interface PostgresTransactionsOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
  readonly turns: Turns;
  readonly closing: AbortSignal;
  /** Default idle timeout of transactions, in milliseconds. */
  readonly idleTimeoutMs: number;
  readonly own: TransactionSource;
  /** By the object that definitions name. */
  readonly dataSources: ReadonlyMap<object, OpenDataSource>;
  readonly verify: (ownership: Ownership) => Promise<boolean>;
}

/** Transactions of steps, on PostgreSQL. */
export class PostgresTransactions implements TransactionStore {
  readonly #options: PostgresTransactionsOptions;
  readonly #statements: CheckpointStatements;
  /** By pool. */
  readonly #slots = new Map<object, Slots>();
  /** For those data sources that are another database. */
  readonly #elsewhere = new Map<object, CompletedTransactions>();

  constructor(options: PostgresTransactionsOptions) {
    this.#options = options;
    this.#statements = checkpointStatements(options.schema);
    const generations = new Generations(options.driver, options.schema, options.closing);
    for (const [dataSource, { source, completions }] of options.dataSources) {
      if (completions === undefined) continue;
      const keyOf = (ownership: Ownership, seq: number): Promise<CompletionKey | undefined> =>
        generations.keyOf(ownership, seq);
      this.#elsewhere.set(
        dataSource,
        new CompletedTransactions({ source, completions, keyOf, verify: options.verify }),
      );
    }
  }

  run(job: TransactionJob): Promise<TransactionAnswer> {
    const source = this.#sourceOf(job);
    if (source === undefined) return Promise.resolve({ kind: 'failed', error: notLaunchedWith() });
    return tryUntilSettled(job, this.#options.closing, async ({ turnFirst }) => {
      const end = await this.#try(job, source, turnFirst);
      // Holdfast's own pool is not coming back, for no write. One of a data source is waited for, until another process runs the workflow.
      if (end.kind === 'again' && end.error instanceof PoolEndedError && source.slots !== undefined) throw end.error;
      return end;
    });
  }

  async decideFailure(failure: TransactionFailure): ReturnType<TransactionStore['decideFailure']> {
    const { ownership, dataSource, modes, record } = failure;
    const elsewhere = this.#elsewhereOf({ dataSource, modes });
    if (elsewhere === undefined) return { kind: 'to-record', record, isOwn: true };
    const answer = await tryUntilSettled({ ...failure, name: record.name }, this.#options.closing, () => {
      this.#assertOpen();
      return elsewhere.decideFailure(ownership, record);
    });
    if (answer.kind === 'recorded') throw new TypeError('A failure is not recorded by a transaction.');
    return answer;
  }

  commitsElsewhere(call: Parameters<TransactionStore['commitsElsewhere']>[0]): boolean {
    return this.#elsewhereOf(call) !== undefined;
  }

  async lookUp(call: Parameters<TransactionStore['lookUp']>[0]): Promise<TransactionLookup> {
    const elsewhere = this.#elsewhereOf(call);
    if (elsewhere === undefined) return { kind: 'nothing' };
    return tryUntilSettled<TransactionLookup>(call, this.#options.closing, () => {
      this.#assertOpen();
      return elsewhere.lookUp(call.ownership, call);
    });
  }

  #elsewhereOf({ dataSource, modes }: Pick<TransactionJob, 'dataSource' | 'modes'>): CompletedTransactions | undefined {
    return dataSource === undefined || modes.readOnly ? undefined : this.#elsewhere.get(dataSource);
  }

  #sourceOf({ dataSource }: TransactionJob): TransactionSource | undefined {
    const { own, dataSources } = this.#options;
    return dataSource === undefined ? own : dataSources.get(dataSource)?.source;
  }

  async #try(job: TransactionJob, source: TransactionSource, turnFirst: boolean): Promise<TryEnd> {
    const slot = this.#slotOf(source);
    const release = slot instanceof Promise ? await slot : slot;
    try {
      this.#assertOpen();
      const permission = job.mayRun();
      if (permission !== undefined) await permission;
      if (job.modes.readOnly) return await this.#read(job, source);
      const elsewhere = this.#elsewhereOf(job);
      if (elsewhere !== undefined) return await elsewhere.oneTry(job, this.#begin(job));
      return await this.#join(job, source, turnFirst);
    } finally {
      release?.();
    }
  }

  /** A transaction that may not write cannot record: its result is a checkpoint of its own. */
  async #read(job: TransactionJob, source: TransactionSource): Promise<TryEnd> {
    const body = new BodyRun(job);
    try {
      const record = await source.run(this.#begin(job), (open) => body.run(open));
      return { kind: 'settled', answer: { kind: 'to-record', record, isOwn: true } };
    } catch (error) {
      return body.endOf(error);
    }
  }

  async #join(job: TransactionJob, source: TransactionSource, turnFirst: boolean): Promise<TryEnd> {
    const { turns } = this.#options;
    const { ownership } = job;
    const nonce = randomUUID();
    const body = new BodyRun(job);
    let release = turnFirst ? await turns.takeTurn(ownership.token, Infinity) : undefined;
    const progress = { isCommitting: false, isOver: false };
    try {
      await source.run(this.#begin(job), async (open) => {
        const record = await body.run(open);
        if (release === undefined) {
          const asked = turns.takeTurn(ownership.token, TURN_WAIT_MS);
          const turn = asked instanceof Promise ? await asked : asked;
          // Without its connection the transaction has ended meanwhile, and nobody else would give the turn back.
          if (progress.isOver) turn?.();
          else release = turn;
        }
        if (release === undefined) throw new NotRecorded({ kind: 'again', error: turnNotFree() });
        // After a conflict the transaction waits for its record to be there: it can then be tried again within the transaction.
        if (turnFirst || open.commitWith === undefined || !canConclude(ownership, record)) {
          await checkpointIn(open, this.#statements, ownership, record, nonce);
          progress.isCommitting = true;
        } else {
          progress.isCommitting = true;
          await concludeIn(open.commitWith, this.#statements, ownership, record, nonce);
        }
      });
      ownership.recordVersion += 1;
      return RECORDED;
    } catch (error) {
      // Whatever COMMIT was answered with, or not: what became of it is on record, or never will be.
      if (!progress.isCommitting || error instanceof NotRecorded) return body.endOf(error);
      const isRecorded = await this.#settle(job, nonce);
      ownership.recordVersion += 1;
      return isRecorded ? RECORDED : body.endOf(error);
    } finally {
      progress.isOver = true;
      release?.();
    }
  }

  /** Waits for the end of a transaction whose COMMIT was not answered, and finds out, or decides, what became of it. */
  async #settle({ ownership, seq }: TransactionJob, nonce: string): Promise<boolean> {
    const { driver, schema, closing } = this.#options;
    const { workflowId, token, recordVersion } = ownership;
    const [row] = await askAgain<{ is_recorded: boolean }>(
      driver,
      closing,
      `SELECT "${schema}".settle_transaction($1::text, $2::uuid, $3::int8, $4::int4, $5::uuid) AS is_recorded`,
      [workflowId, token, recordVersion, seq, nonce],
      { prepare: 'holdfast_settle_transaction', forMs: Infinity },
    );
    return row?.is_recorded === true;
  }

  #begin({ modes, idleTimeoutMs }: TransactionJob): SourceOptions {
    const { isolation, readOnly } = modes;
    return { isolation, readOnly, idleTimeoutMs: idleTimeoutMs ?? this.#options.idleTimeoutMs };
  }

  #slotOf({ slots: shared }: TransactionSource): (() => void) | Promise<() => void> | undefined {
    if (shared === undefined) return undefined;
    let slots = this.#slots.get(shared.pool);
    if (slots === undefined) {
      slots = new Slots(shared.count);
      this.#slots.set(shared.pool, slots);
    }
    return slots.take();
  }

  #assertOpen(): void {
    if (this.#options.closing.aborted) throw new StoreClosedError('The store is closed: no transaction was begun.');
  }
}

const RECORDED: TryEnd = { kind: 'settled', answer: { kind: 'recorded' } };

function notLaunchedWith(): DataSourceError {
  return new DataSourceError(
    'The data source of this transaction is not one that this Holdfast was launched with: add it to "dataSources".',
  );
}

function turnNotFree(): Error {
  return new Error('Another write of this workflow was under way for too long.');
}
