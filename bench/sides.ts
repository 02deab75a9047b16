import type { Work } from './protocol.js';
import type { Scenario } from './scenarios.js';

export const SIDE_NAMES = ['dbos', 'holdfast', 'bare'] as const;

/** Who is measured. */
export type SideName = (typeof SIDE_NAMES)[number];

/** The programs of the sides, relative to this directory. */
export const PROGRAMS: Readonly<Record<SideName, string>> = {
  dbos: './peers/dbos/worker.ts',
  holdfast: './holdfast-worker.ts',
  bare: './bare-loop.ts',
};

/**
 * The loops of a side. The bare client has one connection, so that only scenarios with one workflow at a time are for it; for
 * transactions it has a pool. The peer's transactions are not measured.
 */
export function worksOf(side: SideName, { work, concurrency }: Scenario): readonly Work[] {
  if (work === 'transaction') return side === 'dbos' ? [] : side === 'bare' ? [work, 'checked-transaction'] : [work];
  if (side !== 'bare') return [work];
  return work === 'workflow' && concurrency === 1 ? ['commit', 'checkpoint', 'workflow'] : [];
}
