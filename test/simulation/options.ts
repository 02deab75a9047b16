import { parseArgs } from 'node:util';
import { mutantOf, numberOf } from '../campaigns/support/command-line.js';
import { MUTANTS } from './mutants.js';

/** Set in the process that runs a mutant. */
export const MUTANT_VARIABLE = 'HOLDFAST_SIMULATION_MUTANT';

export interface SimulateCommand {
  readonly seed: number;
  readonly seeds: number;
  readonly mutant: string | undefined;
  /** A failing scenario is not made smaller. */
  readonly quick: boolean;
}

const NAMES = MUTANTS.map(({ name }) => name);

export const USAGE = `npm run simulate -- [--seeds N] [--seed S] [--mutant NAME] [--quick]

  --seeds N      how many schedules to run, default 1000
  --seed S       the first one; each is determined by its number. Default 1
  --mutant NAME  with a mistake in the library, which has to be found: ${NAMES.join(', ')}
  --quick        a schedule that fails is printed as it is, and not made smaller

Exit code 0: green; 1: a judge found something; 2: too little happened to show anything.`;

/** Undefined: help was asked for. @throws Error for what it does not understand. */
export function parseSimulateCommand(args: readonly string[]): SimulateCommand | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      mutant: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    seed: numberOf('--seed', values.seed),
    seeds: numberOf('--seeds', values.seeds),
    mutant: mutantOf(NAMES, values.mutant),
    quick: values.quick,
  };
}
