import { parseArgs } from 'node:util';

import { type Scenario, SCENARIOS } from './scenarios.js';
import { SIDE_NAMES, type SideName } from './sides.js';

/** What the command line asks for. */
export interface BenchOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly scenarios: readonly Scenario[];
  readonly sides: readonly SideName[];
  readonly dbosPoolSize: number;
}

export const USAGE = `Usage: npm run bench -- [options]

  --seconds <n>          length of one measured window, in seconds (default 8)
  --rounds <n>           how often each side is measured in each scenario (default 5)
  --scenario <name>      only this one; may be repeated: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --only <side>          only this one; may be repeated: ${SIDE_NAMES.join(', ')}
  --dbos-pool-size <n>   connections of the peer's pool (default 20, see bench/README.md)
  --help                 this text

The server is BENCH_DATABASE_URL if set, else one that is started for the run.`;

/**
 * @returns `undefined` when asked for help
 * @throws Error when an argument makes no sense
 */
export function parseOptions(args: readonly string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '8' },
      rounds: { type: 'string', default: '5' },
      scenario: { type: 'string', multiple: true },
      only: { type: 'string', multiple: true },
      'dbos-pool-size': { type: 'string', default: '20' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    seconds: positive('--seconds', values.seconds),
    rounds: wholeNumber('--rounds', values.rounds),
    scenarios: values.scenario?.map(findScenario) ?? SCENARIOS,
    sides: values.only?.map(findSide) ?? SIDE_NAMES,
    dbosPoolSize: wholeNumber('--dbos-pool-size', values['dbos-pool-size']),
  };
}

function positive(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isFinite(number) || number <= 0) throw new Error(`${option} is "${value}", not a positive number.`);
  return number;
}

function wholeNumber(option: string, value: string): number {
  const number = positive(option, value);
  if (!Number.isInteger(number)) throw new Error(`${option} is "${value}", not a whole number.`);
  return number;
}

function findScenario(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found === undefined)
    throw new Error(`--scenario is "${name}", not one of ${SCENARIOS.map((s) => s.name).join(', ')}.`);
  return found;
}

function findSide(name: string): SideName {
  const found = SIDE_NAMES.find((side) => side === name);
  if (found === undefined) throw new Error(`--only is "${name}", not one of ${SIDE_NAMES.join(', ')}.`);
  return found;
}
