/** What the campaign and its executor process say to each other over IPC. */

export interface SleeperExecutorOptions {
  readonly database: string;
}

export type Question =
  /** Starts a workflow that sleeps for an hour. */
  { readonly do: 'start'; readonly workflowId: string } | { readonly do: 'memory' };

export interface Memory {
  /** Resident set, after a full garbage collection. */
  readonly rssBytes: number;
  readonly heapBytes: number;
}

export type Told =
  /** How long `Holdfast.launch` took. */
  | { readonly what: 'launched'; readonly tookMs: number }
  | { readonly what: 'started' }
  | ({ readonly what: 'memory' } & Memory)
  /** The step after the sleep has begun; wall clock, in milliseconds. */
  | { readonly what: 'fired'; readonly workflowId: string; readonly at: number };
