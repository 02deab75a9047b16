import type { Traffic } from '../traffic.js';

/** `retain`: what a retention does that deletes what has ended. */
export type ControlVerb = 'cancel' | 'force-delete' | 'fork' | 'retain';

/** What a program of the campaign is given, as JSON. */
export interface ProgramOptions {
  /** Who it is in the ledger, and its connections in the database: unique among all processes of the run. */
  readonly who: string;
  readonly executorId: string;
  readonly database: string;
  readonly ledgerPort: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly maxConnections: number;
  readonly traffic: Traffic;
  /** Workflows of its own that it keeps under way. */
  readonly outstanding: number;
  /** How long bodies of steps and of transactions take, in milliseconds. */
  readonly bodyMs: number;
  readonly transactionMs: number;
  readonly seed: number;
}

export type Command =
  /** Start nothing more. */
  | { readonly do: 'calm' }
  /** Say in the ledger how you are. */
  | { readonly do: 'report' }
  /** Say in the ledger what became of these workflows. */
  | { readonly do: 'observe'; readonly workflowIds: readonly string[] }
  /** Do not let the event loop go on for so long. */
  | { readonly do: 'block'; readonly ms: number }
  /** Move the wall clock. */
  | { readonly do: 'clock'; readonly offsetMs: number }
  /** Start this workflow; the client: from eight clients at once. The answer is how many were told that it is started. */
  | { readonly do: 'storm'; readonly workflowId: string }
  /** The client: a control operation on a workflow. */
  | {
      readonly do: 'control';
      readonly verb: ControlVerb;
      readonly workflowId: string;
    };

export type Numbered<Message> = Message & { readonly id: number };
export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}
