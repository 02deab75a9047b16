import type { Evidence } from '../campaign.js';
import { tellStory } from '../replay.js';
import { judgeLimits } from './limits.js';
import { judgeEnds, judgeOutcomes, judgeRecord } from './outcomes.js';
import { judgeProgress } from './progress.js';
import { judgeSubstance } from './substance.js';
import { judgeFencing, judgeRecovery } from './takeovers.js';
import type { Verdict } from '../../support/verdict.js';

/** All judges. None of them looks at the database: they have the ledger and what the observers were told. */
export function judgeFleet(evidence: Evidence): readonly Verdict[] {
  const story = tellStory(evidence.events);
  return [
    judgeSubstance(evidence, story),
    judgeLimits(evidence, story),
    judgeEnds(evidence),
    judgeOutcomes(evidence),
    judgeRecord(evidence, story),
    judgeRecovery(evidence, story),
    judgeFencing(evidence, story),
    judgeProgress(evidence, story),
  ];
}
