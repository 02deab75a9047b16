import { markdownTable } from '../support/made-part.js';
import type { Fault } from './fault.js';
import type { ChaosResult } from './results.js';

/** Runs that showed nothing are left out of the counts, and said. */
export function renderChaosTable(
  faults: readonly Pick<Fault, 'name' | 'does' | 'landsWhen'>[],
  results: readonly ChaosResult[],
): string {
  const runs = results.filter(({ mutant }) => mutant === undefined);
  const judged = runs.filter(({ is }) => is !== 'void');
  const rows = faults.map(({ name, does, landsWhen }) => {
    const alone = judged.filter((run) => run.faults.length === 1 && run.faults[0] === name);
    const mixed = judged.filter((run) => run.faults.length > 1 && run.faults.includes(name));
    const all = [...alone, ...mixed];
    return [
      `\`${name}\``,
      does,
      landsWhen,
      hitsOf(alone, name),
      hitsOf(mixed, name),
      violationsOf(all),
      minutesOf(alone),
      seedsOf(alone),
    ];
  });
  const mixed = judged.filter((run) => run.faults.length > 1);
  const mutants = [...new Set(results.flatMap(({ mutant }) => (mutant === undefined ? [] : [mutant])))];
  return [
    markdownTable(
      [
        'fault',
        'what is done',
        'a hit counts when',
        'hits alone',
        'hits mixed',
        'violations',
        'minutes alone',
        'seeds',
      ],
      rows,
    ),
    '',
    `Mixed runs: ${String(mixed.length)}, ${minutesOf(mixed)} minutes, violations ${violationsOf(mixed)}, seeds ${seedsOf(mixed)}. ` +
      `Runs that showed nothing, and are not in the table: ${String(runs.length - judged.length)}. ` +
      `Run on ${distinct(judged.map(({ server }) => server))}, ${distinct(judged.map(({ on }) => on))}.`,
    ...(mutants.length === 0
      ? []
      : [
          '',
          markdownTable(
            ['mutant', 'found by', 'seeds'],
            mutants.map((mutant) => {
              const those = results.filter((run) => run.mutant === mutant);
              const judges = those.flatMap(({ violations }) => Object.keys(violations));
              return [`\`${mutant}\``, distinct(judges.map((judge) => `\`${judge}\``)) || '**nobody**', seedsOf(those)];
            }),
          ),
        ]),
  ].join('\n');
}

function hitsOf(runs: readonly ChaosResult[], fault: string): string {
  return runs.reduce((sum, { hits }) => sum + (hits[fault] ?? 0), 0).toLocaleString('en');
}

function violationsOf(runs: readonly ChaosResult[]): string {
  return runs.length === 0
    ? '-'
    : String(runs.reduce((sum, { violations }) => sum + Object.keys(violations).length, 0));
}

function minutesOf(runs: readonly ChaosResult[]): string {
  return runs.reduce((sum, { minutes }) => sum + minutes, 0).toFixed(1);
}

function seedsOf(runs: readonly ChaosResult[]): string {
  return distinct(runs.map(({ seed }) => String(seed)));
}

function distinct(texts: readonly string[]): string {
  return [...new Set(texts)].join(', ');
}
