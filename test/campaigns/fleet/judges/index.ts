import type { Evidence } from '../campaign.js';
import { tellStory } from '../replay.js';
import { judgeLimits } from './limits.js';
import { judgeEnds, judgeOutcomes, judgeRecord } from './outcomes.js';
import { judgeProgress } from './progress.js';
import { judgeSubstance } from './substance.js';
import { judgeFencing, judgeRecovery } from './takeovers.js';
import type { Verdict } from './verdict.js';

export type { Verdict } from './verdict.js';

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

/** Red beats void: what is wrong is wrong, however little there was. */
export function sumUp(verdicts: readonly Verdict[]): Verdict['is'] {
  if (verdicts.some(({ is }) => is === 'red')) return 'red';
  return verdicts.some(({ is }) => is === 'void') ? 'void' : 'green';
}
