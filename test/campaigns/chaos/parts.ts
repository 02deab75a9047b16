import type { Verdict } from '../support/verdict.js';
import type { Hits } from './turns.js';

/** What a part of a run has found, or the whole of it. */
export interface PartFindings extends Hits {
  readonly verdicts: readonly Verdict[];
}

const WORST = ['red', 'void', 'green'] as const;

/** Hits are added up. Of each judge, the first of the worst verdicts stands; where all are green, the last one. */
export function joinParts(parts: readonly PartFindings[]): PartFindings {
  const hits: Record<string, number> = {};
  for (const part of parts) {
    for (const [fault, count] of Object.entries(part.hits)) hits[fault] = (hits[fault] ?? 0) + count;
  }
  const judges = [...new Set(parts.flatMap(({ verdicts }) => verdicts.map(({ judge }) => judge)))];
  return {
    hits,
    impossible: Object.assign({}, ...parts.map(({ impossible }) => impossible)) as Record<string, string>,
    verdicts: judges.map((judge) =>
      worstOf(parts.map(({ verdicts }) => verdicts.find((each) => each.judge === judge))),
    ),
  };
}

function worstOf(verdicts: readonly (Verdict | undefined)[]): Verdict {
  const given = verdicts.flatMap((each, part) => (each === undefined ? [] : [{ ...each, part: part + 1 }]));
  const worst = WORST.find((is) => given.some((each) => each.is === is));
  const those = given.filter(({ is }) => is === worst);
  const shown = worst === 'green' ? those.at(-1) : those[0];
  if (shown === undefined) throw new Error('No part has that judge.');
  const { part, ...verdict } = shown;
  return inPart(part, verdicts.length, verdict);
}

function inPart(part: number, count: number, verdict: Verdict): Verdict {
  return count === 1 ? verdict : { ...verdict, says: `part ${String(part)} of ${String(count)}: ${verdict.says}` };
}
