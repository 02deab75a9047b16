import { parseArgs } from 'node:util';

import { mutantOf, numberOf } from '../support/command-line.js';
import { MUTANTS, type Mutant } from './mutants.js';
import type { FleetOptions } from './plan.js';

export const USAGE = `Usage: npm run campaign:fleet -- [options]

  --minutes <n>             how long executors are killed and stopped (default 3)
  --executors <n>           processes (default 8)
  --workflows <n>           (default 5000)
  --seed <n>                of the choices; default: another one each time, which the report names
  --lease <ms>              of each executor (default 3000)
  --disturbance <ms>        mean time between two kills or pauses (default 2000)
  --recovery-slack <ms>     what recovery may take beyond the lease (default 2000)
  --stall <ms>              what an executor that is well may be silent (default 3000)
  --heal-seconds <n>        what is left may take at the end (default 120)
  --mutant <name>           breaks the database's functions first, so that a judge has to be red: ${MUTANTS.join(', ')}
  --keep <file>             copies the ledger there
  --help                    this text

The server is TEST_DATABASE_URL if set, Debian's with HOLDFAST_TEST_POSTGRES=15, else the embedded PostgreSQL.
Exit code: 0 all judges are green, 1 one is red, 2 none is red and there was too little to judge.`;

export interface FleetCommand {
  readonly options: FleetOptions;
  readonly mutant: Mutant | undefined;
  readonly keep: string | undefined;
}

/** @returns undefined when asked for help */
export function parseFleetCommand(args: readonly string[]): FleetCommand | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '3' },
      executors: { type: 'string', default: '8' },
      workflows: { type: 'string', default: '5000' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      lease: { type: 'string', default: '3000' },
      disturbance: { type: 'string', default: '2000' },
      'recovery-slack': { type: 'string', default: '2000' },
      stall: { type: 'string', default: '3000' },
      'heal-seconds': { type: 'string', default: '120' },
      mutant: { type: 'string' },
      keep: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    mutant: mutantOf(MUTANTS, values.mutant),
    keep: values.keep,
    options: {
      executors: numberOf('--executors', values.executors),
      workflows: numberOf('--workflows', values.workflows),
      chaosMs: numberOf('--minutes', values.minutes) * 60_000,
      healMs: numberOf('--heal-seconds', values['heal-seconds']) * 1_000,
      seed: numberOf('--seed', values.seed),
      leaseMs: numberOf('--lease', values.lease),
      disturbanceMs: numberOf('--disturbance', values.disturbance),
      recoverySlackMs: numberOf('--recovery-slack', values['recovery-slack']),
      stallMs: numberOf('--stall', values.stall),
    },
  };
}
