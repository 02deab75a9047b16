/** What a test and the worker processes it forked say to each other over IPC. */

export interface LaunchOptions {
  readonly database: string;
  /** Another database, for transactions of the application. Default: that of Holdfast. */
  readonly application?: string;
  readonly executorId?: string;
  readonly appVersion?: string;
  readonly lease?: number;
  readonly pollInterval?: number;
  readonly maxConnections?: number;
  readonly shutdownTimeout?: number;
  readonly shutdownOn?: readonly ('SIGTERM' | 'SIGINT')[];
}

/** Something that only the process knows, and that waits for the test's answer. */
export interface Announcement {
  readonly kind: 'announcement';
  readonly id: number;
  /** A step body that begins, workflow code that pauses between two steps, or a question of what became of a body. */
  readonly what: 'body' | 'pause' | 'question';
  readonly name: string;
  readonly workflowId: string;
  readonly epoch: number;
  /** The idempotency key of the body, where it says so. */
  readonly key?: string;
}

export type WorkflowName =
  | 'child'
  | 'order'
  | 'two steps'
  | 'swallowing'
  | 'busy'
  | 'long'
  | 'streaming'
  | 'charging'
  | 'once'
  | 'saga'
  | 'paying';

export type Command = { readonly kind: 'command'; readonly id: number } & (
  | { readonly do: 'start'; readonly name: WorkflowName; readonly workflowId: string; readonly args?: unknown[] }
  | { readonly do: 'result'; readonly workflowId: string }
  | { readonly do: 'health' }
  | { readonly do: 'close' }
);

export interface Reply {
  readonly kind: 'reply';
  readonly id: number;
  readonly value?: unknown;
  readonly error?: {
    readonly name: string | undefined;
    readonly code: string | undefined;
    readonly message: string;
  };
}

export type ToWorker = Command | { readonly kind: 'answer'; readonly id: number; readonly value: unknown };
