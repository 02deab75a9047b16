import type { RequestKind } from '../../../examples/payments/outside/ledger.js';
import type { Mutant } from './mutants.js';
import type { Trap } from './points.js';

/** What a worker process is given when it is launched. */
export interface WorkerOptions {
  readonly database: string;
  readonly executorId: string;
  readonly leaseMs: number;
  readonly provider: string;
  readonly mutant?: Mutant | undefined;
}

/** Who steps into one of these traps is to die there, or to stop; then none of them is set any more. */
export interface ToWorker {
  readonly traps: readonly Trap[];
}

export interface FromWorker {
  readonly what: 'launched';
}

/** The file descriptor of the pipe into which a worker writes a trap, which is done when that returns, before it strikes itself down. */
export const STRUCK_PIPE = 4;

export interface OutsideProcessOptions {
  readonly ledger: string;
  readonly seed: number;
  /** Share of the requests with which something goes wrong. */
  readonly troubleShare: number;
}

export type ToOutside =
  /** Whose request steps into one of these is held there, until it is let go; then none of them is set any more. */
  | { readonly do: 'arm'; readonly traps: readonly Trap[] }
  | { readonly do: 'let-go' }
  /** Refuses connections. */
  | { readonly do: 'shut' }
  | { readonly do: 'open' }
  | { readonly do: 'report' };

export type FromOutside =
  | { readonly what: 'listening'; readonly url: string }
  | { readonly what: 'held'; readonly trap: Trap; readonly worker: number }
  | { readonly what: 'report'; readonly tally: Tally };

/** What was asked of the outside world, whatever came of it. */
export interface Tally {
  readonly requests: Readonly<Record<RequestKind, number>>;
  /** Orders for which more than one worker has asked. */
  readonly handovers: number;
}
