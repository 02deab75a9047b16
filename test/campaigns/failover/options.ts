import { parseArgs } from 'node:util';
import { mutantOf, numberOf } from '../support/command-line.js';
import { hasRelease, releaseAsked, type ServerRelease } from '../support/own-server-place.js';

/**
 * How the primary is lost. In each case the standby hears nothing of it for a moment before: what the primary commits then is
 * on its disk, and was never acknowledged.
 *
 * - `kill`: SIGKILL of the postmaster; `immediate`, `fast`: stopped in that mode. It comes back by itself afterwards.
 * - `cut-off`: it runs on. The straggler's connections to it stay, and it opens no others elsewhere.
 * - `mixed`: it runs on, the straggler's connections to it stay, and those that it opens lead to the new primary.
 */
export const FAILOVER_KINDS = ['kill', 'immediate', 'fast', 'cut-off', 'mixed'] as const;
export type FailoverKind = (typeof FAILOVER_KINDS)[number];

/** `asynchronous`: the standby is not waited for, so that acknowledged writes are lost with the primary. */
export const MUTANTS = ['asynchronous'] as const;
export type Mutant = (typeof MUTANTS)[number];

export interface FailoverOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly executors: number;
  readonly leaseMs: number;
  /** Workflows that the client starts in a second; each executor starts a third of that. */
  readonly rate: number;
  readonly healMs: number;
  readonly release: ServerRelease;
  readonly mutant: Mutant | undefined;
  /** Only these; default all, in turn. */
  readonly kinds: readonly FailoverKind[];
  /** With fewer acknowledgements the run is void. */
  readonly leastAcknowledgements: number;
}

export const USAGE = `Usage: npm run campaign:failover -- [options]

  --rounds <n>              failovers (default 10)
  --seed <n>                of the choices; default: another one each time, which the report names
  --kind <name>             of the loss; may be repeated: ${FAILOVER_KINDS.join(', ')} (default: all in turn)
  --executors <n>           processes (default 3)
  --lease <ms>              of each executor (default 1500)
  --rate <n>                workflows that the client starts in a second (default 6)
  --heal-seconds <n>        what is left may take at the end (default 90)
  --mutant <name>           so that a judge has to be red: ${MUTANTS.join(', ')}
  --keep <file>             copies the ledger there
  --help                    this text

The servers are Debian's PostgreSQL 15 with HOLDFAST_TEST_POSTGRES=15, else the embedded 18.
Exit code: 0 all judges are green, 1 one is red, 2 none is red and there was too little to judge.`;

export interface FailoverCommand {
  readonly options: FailoverOptions;
  readonly keep: string | undefined;
}

/** @returns undefined when asked for help */
export function parseFailoverCommand(args: readonly string[]): FailoverCommand | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      kind: { type: 'string', multiple: true, default: [] },
      executors: { type: 'string', default: '3' },
      lease: { type: 'string', default: '1500' },
      rate: { type: 'string', default: '6' },
      'heal-seconds': { type: 'string', default: '90' },
      mutant: { type: 'string' },
      keep: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const release = releaseAsked(process.env);
  if (!hasRelease(release)) throw new Error("HOLDFAST_TEST_POSTGRES=15 needs Debian's package postgresql-15.");
  return {
    keep: values.keep,
    options: {
      rounds: numberOf('--rounds', values.rounds),
      seed: numberOf('--seed', values.seed),
      executors: numberOf('--executors', values.executors),
      leaseMs: numberOf('--lease', values.lease),
      rate: numberOf('--rate', values.rate),
      healMs: numberOf('--heal-seconds', values['heal-seconds']) * 1_000,
      release,
      mutant: mutantOf(MUTANTS, values.mutant),
      kinds: kindsOf(values.kind),
      leastAcknowledgements: 200,
    },
  };
}

function kindsOf(asked: readonly string[]): readonly FailoverKind[] {
  if (asked.length === 0) return FAILOVER_KINDS;
  return asked.map((name) => {
    const kind = FAILOVER_KINDS.find((known) => known === name);
    if (kind === undefined) throw new Error(`--kind is "${name}", not one of ${FAILOVER_KINDS.join(', ')}.`);
    return kind;
  });
}
