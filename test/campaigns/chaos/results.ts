import { sumUp } from '../support/verdict.js';
import type { ChaosFindings, ChaosRun } from './campaign.js';

/** What one run has found, or a part of it, as a line of a results file. */
export interface ChaosResult {
  readonly seed: number;
  readonly mutant?: string;
  readonly faults: readonly string[];
  readonly hits: Readonly<Record<string, number>>;
  readonly is: 'green' | 'red' | 'void';
  /** Faults that each judge found. */
  readonly violations: Readonly<Record<string, string>>;
  /** Of faults. */
  readonly minutes: number;
  /** Of everything. */
  readonly seconds: number;
  /** When it ended, and on what. */
  readonly on: string;
  readonly server: string;
}

export function resultOf(
  { options, faults, mutant }: Pick<ChaosRun, 'options' | 'faults' | 'mutant'>,
  findings: ChaosFindings,
  chaosMs: number,
  tookMs: number,
): ChaosResult {
  return {
    seed: options.seed,
    ...(mutant === undefined ? {} : { mutant }),
    faults: faults.map(({ name }) => name),
    hits: findings.hits,
    is: sumUp(findings.verdicts),
    violations: Object.fromEntries(
      findings.verdicts.filter(({ is }) => is === 'red').map(({ judge, says }) => [judge, says]),
    ),
    minutes: chaosMs / 60_000,
    seconds: Math.round(tookMs / 1_000),
    on: new Date().toISOString().slice(0, 10),
    server: findings.source,
  };
}
