import type { Verdict } from '../../support/verdict.js';
import { countBy, type Story } from './story.js';

/** So long a fault has its turn, more or less, with some that do not hit in theirs. */
const TURN_MS = 15_000;

/** Whether enough happened for the other judges to have had something to judge. */
export function judgeSubstance(story: Story): Verdict {
  const { faults, options, taken, refusals } = story;
  const acknowledged = story.of('ok').length + story.of('step').length + story.of('outcome').length;
  const hits = countBy(story.of('hit'), ({ fault }) => fault);
  const hit = faults.filter(({ name }) => (hits.get(name) ?? 0) > 0);
  const told = new Set(story.of('outcome').map(({ who, workflowId }) => `${who} ${workflowId}`));
  const parked = story
    .of('lost')
    .filter(
      ({ workflowId, epoch, who }) => taken.has(`${workflowId} ${String(epoch)}`) && told.has(`${who} ${workflowId}`),
    );
  const wants = (what: 'takeover' | 'refusal' | 'parked'): number =>
    faults.some(({ wants }) => wants[what] === true) ? 1 : 0;
  const found: readonly (readonly [what: string, number: number, least: number])[] = [
    ['acknowledgements', acknowledged, options.leastAcknowledged],
    [
      'faults that hit',
      hit.length,
      Math.min(Math.ceil(faults.length / 2), Math.max(1, Math.floor(options.chaosMs / TURN_MS))),
    ],
    ['takeovers', taken.size, wants('takeover')],
    ['refused writes', refusals, wants('refusal')],
    ['parked', parked.length, wants('parked')],
  ];
  const isEnough = found.every(([, number, least]) => number >= least);
  const says = found.map(([what, number, least]) => `${String(number)} ${what} (at least ${String(least)})`).join(', ');
  const all = faults.map(({ name }) => `${name} ${String(hits.get(name) ?? 0)}`).join(', ');
  return { judge: 'substance', is: isEnough ? 'green' : 'void', says: `${says}; hits: ${all}` };
}
