import { parseArgs } from 'node:util';
import { mutantOf, numberOf } from '../support/command-line.js';
import type { Fault } from './fault.js';
import { FAULTS } from './faults/index.js';
import { MUTANTS, type Mutant } from './mutants.js';

export const USAGE = `Usage: npm run chaos -- [options]

  --minutes <n>             how long the faults last (default 2)
  --part <minutes>          judges after each of them, and goes on in the same database without what was judged (default: one part)
  --seed <n>                of the choices; default: another one each time, which the report names
  --fault <name>            only this one; may be given several times. Default: all of them, by turns
  --each                    one after the other, each alone for that long
  --tries <n>               runs again, with the next seed, where there was too little to judge (default 1)
  --executors <n>           processes (default 3)
  --outstanding <n>         workflows that each executor, and the client, keep under way (default 10)
  --lease <ms>              of each executor (default 500)
  --heal-seconds <n>        what is left may take at the end (default 60)
  --handle-seconds <n>      a handle may take after the outcome was recorded (default 2)
  --void-below <n>          acknowledgements below which a run shows nothing (default 200)
  --mutant <name>           a fault in the database's functions, so that a judge has to be red: ${MUTANTS.join(', ')}
  --results <file>          appends what was found, as a line of JSON for each part; npm run chaos:table makes the table of such files
  --keep <file>             copies the ledger there
  --ci                      instead: 18 s of everything by turns, and 18 s of each of the three decisive faults, with limits for a
                            machine that has other things to do; the rest as given
  --leaks                   instead: 50,000 workflows in one executor, and whether its heap grows
  --list                    says what the faults are
  --help                    this text

The server is PostgreSQL 18, or Debian's with HOLDFAST_TEST_POSTGRES=15: one of the campaign's own, and durable.
Exit code: 0 all judges are green, 1 one is red, 2 none is red and there was too little to judge.`;

export interface ChaosOptions {
  readonly executors: number;
  readonly chaosMs: number;
  /** The faults of how long are judged together. */
  readonly partMs: number;
  readonly healMs: number;
  readonly handleMs: number;
  readonly seed: number;
  /** Workflows that each executor, and the client, keep under way. */
  readonly outstanding: number;
  readonly leaseMs: number;
  /** Fewer acknowledgements show nothing. */
  readonly leastAcknowledged: number;
}

export interface ChaosCommand {
  readonly options: ChaosOptions;
  /** One run for each of them. */
  readonly runs: readonly (readonly Fault[])[];
  readonly tries: number;
  readonly mutant: Mutant | undefined;
  readonly results: string | undefined;
  readonly keep: string | undefined;
  readonly leaks: boolean;
}

const CI = ['--minutes', '0.3', '--lease', '2000', '--tries', '3', '--handle-seconds', '20', '--seed', '1'];
const DECISIVE = ['checkpoint-reply-lost', 'completion-reply-lost', 'pause-in-transaction'].map(faultOf);

/** @returns a text when that is all that is asked for */
export function parseChaosCommand(args: readonly string[]): ChaosCommand | string {
  const { values } = parseArgs({
    args: args.includes('--ci') ? [...CI, ...args] : [...args],
    options: {
      minutes: { type: 'string', default: '2' },
      part: { type: 'string' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      fault: { type: 'string', multiple: true },
      each: { type: 'boolean', default: false },
      tries: { type: 'string', default: '1' },
      executors: { type: 'string', default: '3' },
      outstanding: { type: 'string', default: '10' },
      lease: { type: 'string', default: '500' },
      'heal-seconds': { type: 'string', default: '60' },
      'handle-seconds': { type: 'string', default: '2' },
      'void-below': { type: 'string', default: '200' },
      mutant: { type: 'string' },
      results: { type: 'string' },
      keep: { type: 'string' },
      ci: { type: 'boolean', default: false },
      leaks: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return USAGE;
  if (values.list)
    return FAULTS.map(({ name, does, landsWhen }) => `${name}\n    ${does}\n    lands when ${landsWhen}`).join('\n');
  const among = values.each ? FAULTS : FAULTS.filter(({ alone }) => alone !== true);
  const faults = values.fault?.map(faultOf) ?? among.filter(({ losesData }) => losesData !== true);
  return {
    runs: values.each
      ? faults.map((fault) => [fault])
      : values.ci
        ? [faults, ...DECISIVE.map((fault) => [fault])]
        : [faults],
    tries: numberOf('--tries', values.tries),
    mutant: mutantOf(MUTANTS, values.mutant),
    results: values.results,
    keep: values.keep,
    leaks: values.leaks,
    options: {
      executors: numberOf('--executors', values.executors),
      chaosMs: numberOf('--minutes', values.minutes) * 60_000,
      partMs: values.part === undefined ? Infinity : numberOf('--part', values.part) * 60_000,
      healMs: numberOf('--heal-seconds', values['heal-seconds']) * 1_000,
      handleMs: numberOf('--handle-seconds', values['handle-seconds']) * 1_000,
      seed: numberOf('--seed', values.seed),
      outstanding: numberOf('--outstanding', values.outstanding),
      leaseMs: numberOf('--lease', values.lease),
      leastAcknowledged: numberOf('--void-below', values['void-below']),
    },
  };
}

function faultOf(name: string): Fault {
  const fault = FAULTS.find((each) => each.name === name);
  if (fault === undefined)
    throw new Error(`--fault is "${name}", not one of ${FAULTS.map((each) => each.name).join(', ')}.`);
  return fault;
}
