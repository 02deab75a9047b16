/** What the campaign and the executor processes that it forked say to each other over IPC. */

export interface ExecutorOptions {
  readonly database: string;
  readonly executorId: string;
  /** Path of the ledger, to which the bodies report. */
  readonly ledger: string;
  readonly leaseMs: number;
}

/** One workflow of the campaign. */
export interface Job {
  readonly workflowId: string;
  /** The empty text: none, it is started directly. */
  readonly queue: string;
  /** The empty text: none. */
  readonly key: string;
  readonly steps: number;
  readonly bodyMs: number;
}

export type Command = { readonly id: number } & (
  | { readonly do: 'start'; readonly job: Job }
  /** Outcomes of all of these, in their order, as this process sees them. */
  | { readonly do: 'outcomes'; readonly workflowIds: readonly string[] }
  /** Starts no more pulses. */
  | { readonly do: 'calm' }
);

export interface Reply {
  /** 0: the executor is launched. */
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}
