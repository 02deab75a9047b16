import type { Evidence } from '../campaign.js';
import type { Story } from '../replay.js';
import type { Verdict } from '../../support/verdict.js';

/** Share of the disturbances to be expected that must have happened, of each of the two kinds. */
const LEAST_SHARE = 0.15;

/** Whether enough happened for the other judges to have had something to judge. */
export function judgeSubstance({ options }: Evidence, story: Story): Verdict {
  const { chaosMs, disturbanceMs } = options;
  const least = Math.max(1, Math.floor((chaosMs / disturbanceMs) * LEAST_SHARE));
  const lives = [...story.processes.values()];
  const kills = lives.filter(({ killed }) => killed !== undefined && killed.at < story.healedAt).length;
  const pauses = lives.reduce((sum, { stops }) => sum + stops.length, 0);
  const latest = new Map<string, number>();
  let takeovers = 0;
  for (const { workflowId, epoch } of story.bodies) {
    const before = latest.get(workflowId);
    if (before !== undefined && epoch > before) takeovers += 1;
    latest.set(workflowId, Math.max(epoch, before ?? 0));
  }
  // In processes that went on: they had to find out, stop, and wait for another's outcome.
  const parked = story.bodies.filter(({ superseded, how }) => superseded !== undefined && how !== 'killed').length;
  const found = { kills, pauses, takeovers, parked };
  const wanted = { kills: least, pauses: least, takeovers: least, parked: 1 };
  const says = Object.entries(wanted)
    .map(([what, number]) => `${String(found[what as keyof typeof found])} ${what} (at least ${String(number)})`)
    .join(', ');
  const isEnough = Object.entries(wanted).every(([what, number]) => found[what as keyof typeof found] >= number);
  return { judge: 'substance', is: isEnough ? 'green' : 'void', says };
}
