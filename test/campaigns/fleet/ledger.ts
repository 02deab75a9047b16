import { openSync, readFileSync, writeSync } from 'node:fs';

/**
 * What happened, told by those to whom it happened, without a look at the database. One line an event, in one file opened for
 * appending by all processes: the kernel puts the lines in an order, a line that was written survives the process that wrote
 * it, and a process that is killed or stopped writes nothing afterwards.
 *
 * `at` is read from the machine's monotonic clock, which all processes share, in milliseconds.
 */
export type LedgerEvent = { readonly at: number; readonly pid: number } & (
  | ({ readonly what: 'begin' } & BodyOfStep)
  /** `aborted`: the step's signal fired, and the body ended itself. */
  | { readonly what: 'end'; readonly run: string; readonly how: 'done' | 'aborted' }
  /** The executor is registered and claims. */
  | { readonly what: 'launched'; readonly executorId: string }
  /** About to be sent SIGKILL. */
  | { readonly what: 'killed' }
  /** The end of the process has been seen: whatever ran in it has ended. */
  | { readonly what: 'dead' }
  /** It ended, and nobody had killed it. */
  | { readonly what: 'crashed' }
  /** About to be sent SIGSTOP. */
  | { readonly what: 'stopped' }
  /** About to be sent SIGCONT. */
  | { readonly what: 'continued' }
  /** From here on, nobody is killed or stopped any more. */
  | { readonly what: 'healed' }
);

/** One run of one step's body. */
export interface BodyOfStep {
  /** Made up anew by every run; the step's result, so that the outcome says which runs were recorded. */
  readonly run: string;
  readonly workflowId: string;
  readonly queue: string;
  readonly key: string;
  readonly step: number;
  readonly epoch: number;
}

type Told = LedgerEvent extends infer Event ? (Event extends unknown ? Omit<Event, 'at' | 'pid'> : never) : never;

export class Ledger {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  /** Returns when the line is in the file. */
  tell(event: Told, pid = process.pid): void {
    writeSync(this.#file, `${JSON.stringify({ at: monotonicMs(), pid, ...event })}\n`);
  }
}

/** Milliseconds of the clock that all processes of the machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

export function readLedger(path: string): LedgerEvent[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LedgerEvent);
}
