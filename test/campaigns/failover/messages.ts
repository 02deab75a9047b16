/** What an executor process is given when it is launched. */
export interface ExecutorOptions {
  readonly database: string;
  readonly library: 'pg' | 'postgres';
  readonly executorId: string;
  readonly leaseMs: number;
  readonly ledger: string;
  /** Time between two workflows that it starts itself. */
  readonly startEveryMs: number;
}

export type ToExecutor =
  /** To wait for the outcome of these, too. */
  | { readonly do: 'hear'; readonly workflowIds: readonly string[] }
  /** To start none any more; answered when no start is under way. */
  | { readonly do: 'calm' };

export type FromExecutor = { readonly what: 'launched' } | { readonly what: 'calm' };
