import type { Verdict } from '../../support/verdict.js';
import type { Evidence } from '../campaign.js';
import { BLOWS, POINTS } from '../points.js';

/** Share of the strikes to be expected that must have happened, of each of the two kinds. */
const LEAST_SHARE = 0.08;
/** From so many strikes on, every point must have been hit in both ways; before, a share of them. */
const STRIKES_FOR_ALL_POINTS = 150;
/** Of a hundred orders, at least so many. */
const LEAST_PER_HUNDRED = { 'replies lost': 3, lookups: 3, refunds: 2, cancellations: 3, handovers: 3 };

/** Whether enough happened for the other judges to have had something to judge. */
export function judgeSubstance({ options, ledger, strikes, tally, cancellations }: Evidence): Verdict {
  const least = Math.max(1, Math.floor((options.chaosMs / options.strikeMs) * LEAST_SHARE));
  const blows = (blow: string): number => strikes.filter((strike) => strike.blow === blow).length;
  const combinations = POINTS.length * BLOWS.length;
  const hit = new Set(
    strikes.filter(({ point }) => point !== 'at random').map(({ point, blow }) => `${point} ${blow}`),
  );
  const found: Readonly<Record<string, number>> = {
    kills: blows('kill'),
    pauses: blows('pause'),
    'points hit': hit.size,
    'replies lost': ledger.filter(
      (entry) =>
        entry.what === 'trouble' &&
        (entry.trouble === 'reply-lost' || entry.trouble === 'no-reply' || entry.trouble === 'error-after'),
    ).length,
    lookups: tally.requests.lookup,
    refunds: ledger.filter(({ what }) => what === 'refunded').length,
    cancellations,
    handovers: tally.handovers,
  };
  const wanted: Readonly<Record<string, number>> = {
    kills: least,
    pauses: least,
    'points hit': strikes.length >= STRIKES_FOR_ALL_POINTS ? combinations : Math.floor(strikes.length / 3),
    ...Object.fromEntries(
      Object.entries(LEAST_PER_HUNDRED).map(([what, share]) => [what, Math.ceil((options.orders * share) / 100)]),
    ),
  };
  const isEnough = Object.entries(wanted).every(([what, number]) => (found[what] ?? 0) >= number);
  const missed = POINTS.flatMap((point) => BLOWS.map((blow) => `${point} ${blow}`)).filter((name) => !hit.has(name));
  const says = Object.entries(wanted)
    .map(([what, number]) => `${String(found[what])} ${what} (at least ${String(number)})`)
    .join(', ');
  const rest = isEnough || missed.length === 0 ? '' : `; not hit: ${missed.join(', ')}`;
  return { judge: 'substance', is: isEnough ? 'green' : 'void', says: says + rest };
}
