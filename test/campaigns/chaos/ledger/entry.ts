/**
 * What processes tell the ledger. Values are the JSON texts of what was returned, so that they can be compared byte by byte with what the
 * database has.
 */
export type Statement =
  /** A call is about to be made. `op` is its own; one that is never settled is unknown, and stays so. */
  | {
      readonly what: 'invoke';
      readonly op: string;
      readonly kind: CallKind;
      readonly workflowId: string;
      readonly value?: string;
    }
  | { readonly what: 'ok'; readonly op: string; readonly value?: string }
  /** Refused for certain: nothing was written. */
  | { readonly what: 'fail'; readonly op: string; readonly code: string }
  | { readonly what: 'unknown'; readonly op: string; readonly code: string }
  /** An effect on the outside world: the body of a step has begun. The ledger is the sink of effects as well. */
  | ({
      readonly what: 'body';
      readonly run: string;
      readonly key: string;
      readonly queue?: string;
    } & Place)
  | { readonly what: 'body-end'; readonly run: string; readonly how: 'done' | 'aborted' }
  /** A durable call of a workflow has returned: its checkpoint is acknowledged. */
  | ({ readonly what: 'step'; readonly seq: number; readonly value?: string } & Place)
  /** The signal of a workflow has fired: this execution knows that it owns it no more. */
  | { readonly what: 'lost'; readonly workflowId: string; readonly epoch: number }
  /** A sleep of so many milliseconds begins, and is over. */
  | ({ readonly what: 'sleep' } & Sleep)
  | ({ readonly what: 'awake' } & Sleep)
  /** What a handle returned, or the code of what it threw. */
  | { readonly what: 'outcome'; readonly workflowId: string; readonly value?: string; readonly code?: string }
  | { readonly what: 'delivered'; readonly eventId: string; readonly workflowId: string; readonly payload: string }
  /** An error, wherever it turned up. */
  | { readonly what: 'error'; readonly where: ErrorPlace; readonly code: string; readonly message: string }
  /** What the supervisor did to a process, before it did it. */
  | { readonly what: 'process'; readonly process: string; readonly happened: ProcessEvent }
  | { readonly what: 'hit'; readonly fault: string; readonly detail: string }
  | { readonly what: 'phase'; readonly phase: Phase }
  /** Connections that the server has of a process when nothing is left to do, and how many it may have. */
  | { readonly what: 'connections'; readonly process: string; readonly count: number; readonly limit: number }
  /** What a process says of itself when nothing is left to do. */
  | { readonly what: 'report'; readonly report: ProcessReport };

/** Where in which workflow. Names of steps are unique in a workflow. */
export interface Place {
  readonly workflowId: string;
  readonly step: string;
  readonly epoch: number;
}

export interface Sleep {
  readonly workflowId: string;
  readonly epoch: number;
  readonly seq: number;
  readonly ms: number;
}

export type CallKind = 'start' | 'enqueue' | 'send' | 'cancel' | 'delete' | 'retain' | 'fork';
export type ProcessEvent =
  'launched' | 'killed' | 'dead' | 'crashed' | 'stopped' | 'continued' | 'disturbed' | 'undisturbed' | 'expired';
export type ErrorPlace = 'call' | 'workflow' | 'unhandled' | 'warning';
export type Phase = 'faults' | 'heal' | 'settled' | 'over';

/** Of a process that is well and has nothing to do. */
export interface ProcessReport {
  readonly running: number;
  /** Timers that are under way, and how many there were right after the launch. */
  readonly timers: number;
  readonly timersAtLaunch: number;
  /** Executions that were parked, and writes that met a conflict, since the launch. */
  readonly parked: number;
  readonly conflicts: number;
}

/** A line of the ledger: who said what, in which order, when by the ledger's clock (milliseconds since 1970). */
export type Entry = Statement & { readonly n: number; readonly at: number; readonly who: string };
