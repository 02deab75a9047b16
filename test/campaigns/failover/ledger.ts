import { openSync, readFileSync, writeSync } from 'node:fs';
import type { FailoverKind } from './options.js';

/**
 * What was acknowledged, told by those who got the acknowledgement, in one file that no database has a part in. A line is
 * written before the process goes on. `at`: the machine's monotonic clock, in milliseconds.
 */
export type LedgerEvent = { readonly at: number; readonly who: string } & (
  | { readonly what: 'started'; readonly workflowId: string; readonly input: string }
  /** A body began. `run`: its result, made up anew each time. */
  | {
      readonly what: 'body';
      readonly workflowId: string;
      readonly step: string;
      readonly run: string;
      readonly epoch: number;
    }
  /** The workflow's code was given the result of a step or a transaction, or a message; or its event was set. */
  | {
      readonly what: 'recorded';
      readonly kind: 'step' | 'message' | 'event';
      readonly workflowId: string;
      readonly step: string;
      readonly value: string;
    }
  | { readonly what: 'sent'; readonly workflowId: string; readonly value: string }
  /** A handle returned. */
  | { readonly what: 'outcome'; readonly workflowId: string; readonly value: string }
  /** Somebody was told something that cannot be: no workflow of the campaign fails, or is deleted. */
  | { readonly what: 'wrong'; readonly workflowId: string; readonly error: string }
  /** The primary is about to be lost. `straggler`: who goes on talking to it. */
  | { readonly what: 'lost'; readonly kind: FailoverKind; readonly straggler: string }
  | { readonly what: 'promoted' }
  /** The old primary is back, and the straggler talks to it. `unacknowledged`: commits that it has and the new one has not. */
  | { readonly what: 'back'; readonly unacknowledged: number }
  /** The straggler finds the new primary. */
  | { readonly what: 'rejoined' }
);

type Told = LedgerEvent extends infer Event ? (Event extends unknown ? Omit<Event, 'at' | 'who'> : never) : never;

export class Ledger {
  readonly #file: number;
  readonly #who: string;

  constructor(path: string, who: string) {
    this.#file = openSync(path, 'a');
    this.#who = who;
  }

  tell(event: Told): void {
    const at = Number(process.hrtime.bigint() / 1_000n) / 1_000;
    writeSync(this.#file, `${JSON.stringify({ at, who: this.#who, ...event })}\n`);
  }
}

export function readLedger(path: string): LedgerEvent[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LedgerEvent);
}
