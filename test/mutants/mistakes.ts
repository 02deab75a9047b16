import type { Mutant as ChaosMutant } from '../campaigns/chaos/mutants.js';
import { MUTANTS as SIMULATED } from '../simulation/mutants.js';

/** A campaign that has to turn red. */
export interface RedCampaign {
  /** Of package.json. */
  readonly script: 'simulate' | 'chaos' | 'campaign:failover';
  readonly args: readonly string[];
  /** The judges of which one at least has to be among the red ones: a campaign that is red for another reason shows nothing. */
  readonly foundBy: readonly string[];
}

/** A way to get durable execution wrong. */
export interface Mistake {
  readonly is: string;
  readonly campaigns: readonly [RedCampaign, ...RedCampaign[]];
}

/** A lease, and times for handles, to which a busy machine keeps: what turns red is the mistake. */
const PATIENT = ['--minutes', '0.4', '--seed', '1', '--lease', '2000', '--handle-seconds', '20', '--tries', '4'];

export const MISTAKES: readonly Mistake[] = [
  {
    is: 'the token is not verified',
    campaigns: [simulated('no-token'), struck('no-token', 'false-death', ['owners', 'results'])],
  },
  {
    is: 'the version is not verified',
    campaigns: [simulated('no-version'), struck('no-version', 'checkpoint-reply-lost', ['versions', 'results'])],
  },
  { is: 'the check and the write are two transactions', campaigns: [simulated('check-apart')] },
  {
    is: 'whether a row is there is selected, and then it is inserted',
    campaigns: [struck('select-then-insert', 'duplicate-starts', ['versions', 'owners'])],
  },
  { is: 'a commit without a reply is taken for failed', campaigns: [simulated('unknown-is-failure')] },
  { is: 'a commit without a reply is taken for done', campaigns: [simulated('unknown-is-success')] },
  { is: 'a parked execution returns its own result', campaigns: [simulated('parked-tells-its-own')] },
  { is: 'leases go by the clock of a worker', campaigns: [simulated('worker-clock')] },
  { is: 'a time stamp in milliseconds identifies a write', campaigns: [simulated('time-as-nonce')] },
  { is: 'a token is used again after a restart', campaigns: [simulated('token-reused')] },
  { is: 'a heartbeat revives a lease that has run out', campaigns: [simulated('heartbeat-revives')] },
  {
    is: 'retention deletes a child that a live parent waits for',
    campaigns: [struck('retention-deletes-awaited-child', 'controls', ['failures'])],
  },
  { is: 'a lost ownership is forgotten again', campaigns: [simulated('loss-not-sticky')] },
  { is: 'what one checkpoint writes is written in parts', campaigns: [simulated('checkpoint-not-atomic')] },
  {
    is: 'a recorded result gives way to a later one',
    campaigns: [struck('result-overwritten', 'pause', ['checkpoints', 'results'])],
  },
  {
    is: 'none: the server acknowledges what is not on its disk',
    campaigns: [
      {
        script: 'chaos',
        args: ['--fault', 'asynchronous-commit', ...PATIENT],
        foundBy: ['starts', 'checkpoints', 'outcomes'],
      },
    ],
  },
  {
    is: 'none: the standby that is promoted was not a synchronous one',
    campaigns: [
      {
        script: 'campaign:failover',
        args: ['--mutant', 'asynchronous', '--rounds', '2', '--seed', '3'],
        foundBy: ['acknowledged'],
      },
    ],
  },
];

function simulated(mutant: string): RedCampaign {
  const found = SIMULATED.find(({ name }) => name === mutant);
  if (found === undefined) throw new Error(`The simulation has no mutant "${mutant}".`);
  const { seed = 1, foundBy } = found;
  const args = ['--mutant', mutant, '--seeds', '1500', '--seed', String(seed), '--quick'];
  return { script: 'simulate', args, foundBy };
}

function struck(mutant: ChaosMutant, fault: string, foundBy: readonly string[]): RedCampaign {
  return { script: 'chaos', args: ['--mutant', mutant, '--fault', fault, ...PATIENT], foundBy };
}
