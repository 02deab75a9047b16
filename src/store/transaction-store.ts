import type { TransactionModes } from '../api/data-source.js';
import type { Denied, Ownership, StepRecord } from './store.js';

/** Where the bodies of `@Transaction` run, together with the record of their results. */
export interface TransactionStore {
  /**
   * Runs the body in a transaction that records its result last, and commits. Serialisation failures, deadlocks and lost
   * connections are dealt with by running the body again; a COMMIT without a reply is resolved to what became of it.
   *
   * @throws StoreClosedError
   */
  run(job: TransactionJob): Promise<TransactionAnswer>;
  /**
   * Decides that a call has failed for good, before that is recorded. In another database than the record's, an execution that was
   * replaced may have committed the body meanwhile: then that is the answer.
   *
   * @throws StoreClosedError
   */
  decideFailure(failure: TransactionFailure): Promise<Exclude<TransactionAnswer, { readonly kind: 'recorded' }>>;
  /** Whether such transactions commit in another database than the record's, so that they may have without a record. */
  commitsElsewhere(call: Pick<TransactionJob, 'dataSource' | 'modes'>): boolean;
  /**
   * What has been decided of a call that commits elsewhere and has no record. None of an earlier owner is decided after that.
   *
   * @throws StoreClosedError
   */
  lookUp(
    call: Pick<TransactionJob, 'ownership' | 'seq' | 'name' | 'dataSource' | 'modes' | 'signal'>,
  ): Promise<TransactionLookup>;
}

export type TransactionLookup =
  | { readonly kind: 'decided'; readonly record: StepRecord }
  | { readonly kind: 'nothing' }
  /** The data source could not be asked. */
  | { readonly kind: 'failed'; readonly error: unknown }
  | Denied;

/** What a transaction failed with for good. */
export interface TransactionFailure extends Pick<TransactionJob, 'ownership' | 'dataSource' | 'modes' | 'signal'> {
  readonly record: StepRecord;
}

/** One attempt of one transaction of a workflow. */
export interface TransactionJob {
  readonly ownership: Ownership;
  readonly seq: number;
  readonly name: string;
  readonly modes: TransactionModes;
  /** Milliseconds; null: the default. */
  readonly idleTimeoutMs: number | null;
  /** The data source as the definition names it; undefined: the store's own connection. */
  readonly dataSource: object | undefined;
  /** Fires when the attempt is to end. */
  readonly signal: AbortSignal;
  /** Before each run of the body: resolves, or is undefined, when this execution still owns its workflow; else throws. */
  readonly mayRun: () => Promise<void> | undefined;
  /** Runs the body once; resolves with what is to be recorded. */
  readonly body: (open: OpenTransaction) => Promise<StepRecord>;
}

/** An open transaction, as the body's host sees it. */
export interface OpenTransaction {
  /** What the user's library knows. */
  readonly client: unknown;
  /** To be called when `body` is over: from then on the client refuses what it is asked to send, where it is not a library's to do so. */
  readonly takeBack?: () => void;
  /** To be called before `body` rejects although the user's code is still running, and may still use the client. */
  readonly abandon: (cause: Error, running: Promise<unknown>) => void;
}

export type TransactionAnswer =
  /** Committed together with the record of its result. */
  | { readonly kind: 'recorded' }
  /** Committed, and its result is still to be recorded; not `isOwn`: it is that of an earlier run of this call. */
  | { readonly kind: 'to-record'; readonly record: StepRecord; readonly isOwn: boolean }
  /** Rolled back: what the body threw, or why its result could not be recorded. */
  | { readonly kind: 'failed'; readonly error: unknown }
  | Denied;
