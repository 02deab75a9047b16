/** `void`: there was too little to judge. */
export interface Verdict {
  readonly judge: string;
  readonly is: 'green' | 'red' | 'void';
  /** The numbers, and the first thing that is wrong. */
  readonly says: string;
}

/** Of the faults that a judge found, so many are shown. */
const SHOWN = 4;

/** Red with the first of the faults, else green. */
export function verdict(judge: string, faults: readonly string[], numbers: string): Verdict {
  if (faults.length === 0) return { judge, is: 'green', says: numbers };
  const shown = faults.slice(0, SHOWN).join(' | ');
  return { judge, is: 'red', says: `${numbers}; ${String(faults.length)} faults: ${shown}` };
}

/** Whole milliseconds: median and largest. */
export function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  if (sorted.length === 0) return 'none';
  return `median ${ms(sorted[sorted.length >> 1])}, largest ${ms(sorted.at(-1))}`;
}

export function ms(value: number | undefined): string {
  return value === undefined ? '-' : `${String(Math.round(value))} ms`;
}

/** Red beats void: what is wrong is wrong, however little there was. */
export function sumUp(verdicts: readonly Verdict[]): Verdict['is'] {
  if (verdicts.some(({ is }) => is === 'red')) return 'red';
  return verdicts.some(({ is }) => is === 'void') ? 'void' : 'green';
}

/** Of a campaign's process. */
export const EXIT_CODES = { green: 0, red: 1, void: 2 } as const;

/** A line for each judge, and one for all of them. */
export function renderVerdicts(verdicts: readonly Verdict[]): string {
  return [
    ...verdicts.map(({ judge, is, says }) => `${judge.padEnd(10)} ${is.padEnd(6)} ${says}`),
    sumUp(verdicts),
  ].join('\n');
}
