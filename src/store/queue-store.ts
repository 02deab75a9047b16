import type { EnqueueRefusal, EnqueueRequest, Refused } from './store.js';

/** Queues, and what is put into them from outside of workflows. */
export interface QueueStore {
  /** Answers in the order of the requests. Tells the executors. */
  enqueue(requests: readonly EnqueueRequest[]): Promise<readonly EnqueueAnswer[]>;
  /** The same inside a transaction of the caller's. Executors are told when it commits. */
  enqueueIn(transaction: StatementRunner, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueAnswer[]>;
  /** Creates or replaces; a declaration only when it is not the one that was applied last. */
  define(queues: readonly QueueRecord[], options: { readonly isDeclaration: boolean }): Promise<void>;
  /** False when there is no such queue. */
  update(name: string, changes: Partial<QueueRecord> & { readonly paused?: boolean }): Promise<boolean>;
  list(): Promise<readonly StoredQueue[]>;
  listCounted(): Promise<readonly CountedQueue[]>;
  delete(name: string, options: { readonly release: boolean }): Promise<QueueDeletion>;
  get(name: string): Promise<CountedQueue | null>;
  /** Clears up to `limit` deduplication IDs that nobody holds any more. */
  clearDeduplication(limit: number): Promise<void>;
  close(): void;
}

/** Runs one statement with one text parameter, and returns its rows. */
export type StatementRunner = (text: string, parameter: string) => Promise<readonly unknown[]>;

export type EnqueueAnswer =
  | { readonly kind: 'enqueued' }
  /** The ID is taken: by a workflow of this name, to attach to, or by one of another. */
  | { readonly kind: 'exists'; readonly name: string }
  /** The call went to this workflow, which has not started. */
  | { readonly kind: 'debounced'; readonly workflowId: string }
  | EnqueueRefusal
  | Refused;

/** Settings of a queue. Null: no limit. */
export interface QueueRecord {
  readonly name: string;
  readonly concurrency: number | null;
  readonly executorConcurrency: number | null;
  readonly keyConcurrency: number | null;
  readonly rateLimit: { readonly limit: number; readonly periodMs: number } | null;
  readonly keyRateLimit: { readonly limit: number; readonly periodMs: number } | null;
}

export interface StoredQueue extends QueueRecord {
  readonly paused: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface CountedQueue extends StoredQueue {
  readonly waiting: number;
  readonly delayed: number;
  readonly running: number;
  readonly blocked: number;
}

export type QueueDeletion =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-empty'; readonly workflows: number }
  /** Somebody was enqueuing into it, or claiming from it, all the time. */
  | { readonly kind: 'busy' };
