import fc from 'fast-check';
import { fixedParts, runScenario, type Fixed, type RunResult } from './run-scenario.js';
import type { Scenario } from './scenario.js';
import { SCENARIOS, type ScopeName } from './scenarios.js';
import { addCounts, newCounts, type Counts, type Violation } from './violations.js';

/** How long a failing scenario is made smaller, in milliseconds of real time. */
const SHRINKING_MS = 60_000;

export interface Failure {
  readonly scope: ScopeName;
  readonly seed: number;
  readonly scenario: Scenario;
  readonly violations: readonly Violation[];
}

export interface Simulation {
  readonly seeds: number;
  readonly counts: Counts;
  /** The first one; nothing is run after it. */
  readonly failure: Failure | undefined;
}

/** Runs the scenarios of these seeds, one after the other, until one fails. */
export async function simulate(scope: ScopeName, first: number, seeds: number): Promise<Simulation> {
  const fixed = await fixedParts();
  const counts = newCounts();
  const unhandled = new Unhandled();
  try {
    for (let done = 0; done < seeds; done++) {
      const seed = first + done;
      const { scenario, result } = await runSeed(scope, seed, fixed, unhandled);
      addCounts(counts, result.counts);
      const { violations } = result;
      if (violations.length > 0) return { seeds: done + 1, counts, failure: { scope, seed, scenario, violations } };
    }
  } finally {
    unhandled.stop();
  }
  return { seeds, counts, failure: undefined };
}

/** The smallest scenario that was found in which the same judge finds the same fault. */
export async function shrink({ scope, seed, violations }: Failure): Promise<Failure> {
  const fixed = await fixedParts();
  const unhandled = new Unhandled();
  const judge = violations[0]?.judge;
  let last: { readonly scenario: Scenario; readonly violations: readonly Violation[] } | undefined;
  await fc.check(
    fc.asyncProperty(SCENARIOS[scope], async (scenario) => {
      const found = await judged(scenario, fixed, unhandled);
      if (!found.violations.some((violation) => violation.judge === judge)) return true;
      last = { scenario, violations: found.violations };
      return false;
    }),
    { seed, numRuns: 1, plugins: [fc.unbiased(), fc.interruptAfterTimeLimit(SHRINKING_MS)] },
  );
  unhandled.stop();
  if (last === undefined) throw new Error(`Seed ${String(seed)} fails once, and then it does not.`);
  return { scope, seed, ...last };
}

/** What happens in a run, line by line. */
export async function traceOf(scenario: Scenario): Promise<readonly string[]> {
  const lines: string[] = [];
  await runScenario(scenario, await fixedParts(), (line) => lines.push(line));
  return lines;
}

async function runSeed(
  scope: ScopeName,
  seed: number,
  fixed: Fixed,
  unhandled: Unhandled,
): Promise<{ readonly scenario: Scenario; readonly result: RunResult }> {
  let run: { readonly scenario: Scenario; readonly result: RunResult } | undefined;
  await fc.check(
    fc.asyncProperty(SCENARIOS[scope], async (scenario) => {
      run ??= { scenario, result: await judged(scenario, fixed, unhandled) };
    }),
    { seed, numRuns: 1, plugins: [fc.unbiased()] },
  );
  if (run === undefined) throw new Error('The property was not run.');
  return run;
}

async function judged(scenario: Scenario, fixed: Fixed, unhandled: Unhandled): Promise<RunResult> {
  const result = await runScenario(scenario, fixed);
  const errors = (await unhandled.take()).map((text) => ({ judge: 'errors' as const, text, at: 0 }));
  return { ...result, violations: [...result.violations, ...errors] };
}

/** Rejections that nobody handles: there must be none. */
class Unhandled {
  readonly #found: string[] = [];
  readonly #listener = (reason: unknown): void => {
    this.#found.push(`unhandled: ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`);
  };

  constructor() {
    process.on('unhandledRejection', this.#listener);
  }

  /** They show in the next round of the event loop. */
  async take(): Promise<readonly string[]> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    return this.#found.splice(0);
  }

  stop(): void {
    process.off('unhandledRejection', this.#listener);
  }
}
