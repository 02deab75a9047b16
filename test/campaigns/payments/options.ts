import { parseArgs } from 'node:util';
import { mutantOf, numberOf } from '../support/command-line.js';
import { MUTANTS, type Mutant } from './mutants.js';
import type { PaymentsOptions } from './plan.js';

export const USAGE = `Usage: npm run campaign:payments -- [options]

  --minutes <n>             how long orders are placed, and workers killed and stopped (default 3)
  --workers <n>             processes (default 6)
  --orders <n>              default: 240 a minute
  --seed <n>                of the choices; default: another one each time, which the report names
  --lease <ms>              of each worker (default 3000)
  --strike <ms>             mean time between two kills or pauses (default 700)
  --trouble <share>         of the requests to the outside world with which something goes wrong (default 0.15)
  --heal-seconds <n>        what is left may take at the end (default 180)
  --mutant <name>           a shop with a mistake, so that a judge has to be red: ${MUTANTS.join(', ')}
  --keep <file>             copies the ledger there
  --help                    this text

The server is TEST_DATABASE_URL if set, Debian's with HOLDFAST_TEST_POSTGRES=15, else the embedded PostgreSQL.
Exit code: 0 all judges are green, 1 one is red, 2 none is red and there was too little to judge.`;

const ORDERS_A_MINUTE = 240;
const TRAPS = 16;

export interface PaymentsCommand {
  readonly options: PaymentsOptions;
  readonly mutant: Mutant | undefined;
  readonly keep: string | undefined;
}

/** @returns undefined when asked for help */
export function parsePaymentsCommand(args: readonly string[]): PaymentsCommand | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '3' },
      workers: { type: 'string', default: '6' },
      orders: { type: 'string' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      lease: { type: 'string', default: '3000' },
      strike: { type: 'string', default: '700' },
      trouble: { type: 'string', default: '0.15' },
      'heal-seconds': { type: 'string', default: '180' },
      mutant: { type: 'string' },
      keep: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const minutes = numberOf('--minutes', values.minutes);
  return {
    mutant: mutantOf(MUTANTS, values.mutant),
    keep: values.keep,
    options: {
      workers: numberOf('--workers', values.workers),
      orders: values.orders === undefined ? Math.round(minutes * ORDERS_A_MINUTE) : numberOf('--orders', values.orders),
      chaosMs: minutes * 60_000,
      healMs: numberOf('--heal-seconds', values['heal-seconds']) * 1_000,
      seed: numberOf('--seed', values.seed),
      leaseMs: numberOf('--lease', values.lease),
      strikeMs: numberOf('--strike', values.strike),
      traps: TRAPS,
      troubleShare: numberOf('--trouble', values.trouble),
    },
  };
}
