import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Verdict } from '../support/verdict.js';
import type { Fault } from './fault.js';
import type { ChaosOptions } from './options.js';

/** What the judges' process is given. */
export interface Case {
  /** The server itself. */
  readonly database: string;
  readonly ledger: string;
  readonly options: ChaosOptions;
  readonly faults: readonly Pick<Fault, 'name' | 'wants'>[];
  /** Refused writes that proxies have seen. */
  readonly refusals: number;
  /** Codes of errors that the documentation lists. */
  readonly documentedCodes: readonly string[];
  readonly keep?: string | undefined;
}

/** Has a fresh process look at what is left. */
export async function judgeApart(program: string, given: Case): Promise<readonly Verdict[]> {
  const child = fork(program, [JSON.stringify(given)], { execArgv: ['--max-old-space-size=4096'] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The judges' process ended without a verdict: ${String(code)}.`);
  });
  const [verdicts] = (await Promise.race([once(child, 'message'), ended])) as [readonly Verdict[]];
  ended.catch(() => undefined);
  child.disconnect();
  return verdicts;
}
