import type { Verdict } from '../../support/verdict.js';
import type { Evidence } from '../evidence.js';
import {
  judgeCheckpoints,
  judgeEvents,
  judgeFailures,
  judgeMessages,
  judgeOutcomes,
  judgeStarts,
} from './acknowledged.js';
import { judgeEffects, judgeLimits, judgeTimers, judgeTransactions } from './effects.js';
import { judgeEnds, judgeTidiness } from './ends.js';
import { judgeFencing, judgeHandles } from './fencing.js';
import { judgeOwners, judgeResults, judgeVersions } from './record.js';
import { tellStory, type Story } from './story.js';
import { judgeSubstance } from './substance.js';

const JUDGES: readonly ((story: Story) => Verdict)[] = [
  judgeSubstance,
  judgeStarts,
  judgeCheckpoints,
  judgeOutcomes,
  judgeFailures,
  judgeMessages,
  judgeEvents,
  judgeVersions,
  judgeOwners,
  judgeResults,
  judgeTransactions,
  judgeEffects,
  judgeLimits,
  judgeTimers,
  judgeFencing,
  judgeHandles,
  judgeEnds,
  judgeTidiness,
];

/** Whether anything went wrong, by what processes were told and by what is on record. */
export function judgeChaos(evidence: Evidence): readonly Verdict[] {
  const story = tellStory(evidence);
  return JUDGES.map((judge) => judge(story));
}
