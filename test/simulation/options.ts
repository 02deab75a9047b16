import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { mutantOf, numberOf } from '../campaigns/support/command-line.js';
import { MUTANTS } from './mutants.js';
import type { ScopeName } from './scenarios.js';

/** Each mutant in turn. */
export const ALL_MUTANTS = 'all';

export interface SimulateCommand {
  readonly seed: number;
  readonly seeds: number;
  readonly scope: ScopeName;
  readonly mutant: string | undefined;
  readonly threads: number;
  /** A failing scenario is not made smaller. */
  readonly quick: boolean;
}

const NAMES = [ALL_MUTANTS, ...MUTANTS.map(({ name }) => name)];

export const USAGE = `npm run simulate -- [--seeds N] [--seed S] [--small] [--mutant NAME] [--quick] [--threads N]

  --seeds N      how many schedules to run, default 1000
  --seed S       the first one; each is determined by its number. Default 1
  --small        one or two workflows of one or two calls, and one or two faults in their midst
  --mutant NAME  with a mistake in the library, which has to be found: ${NAMES.join(', ')}
                 all: each in turn, and how many schedules it took to find it; exit code 1 if one was not found
  --quick        a schedule that fails is printed as it is, and not made smaller
  --threads N    how many at once, default as many as there are cores. What is found does not depend on it

Exit code 0: green; 1: a judge found something; 2: too little happened to show anything.`;

/** Undefined: help was asked for. @throws Error for what it does not understand. */
export function parseSimulateCommand(args: readonly string[]): SimulateCommand | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      small: { type: 'boolean', default: false },
      mutant: { type: 'string' },
      threads: { type: 'string', default: String(availableParallelism()) },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const threads = numberOf('--threads', values.threads);
  if (!Number.isInteger(threads) || threads < 1) throw new Error('--threads has to be 1 or more.');
  return {
    seed: numberOf('--seed', values.seed),
    seeds: numberOf('--seeds', values.seeds),
    scope: values.small ? 'small' : 'ordinary',
    mutant: mutantOf(NAMES, values.mutant),
    threads,
    quick: values.quick,
  };
}
