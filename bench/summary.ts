import type { Measurement } from './measure.js';
import type { Work } from './protocol.js';
import type { Scenario } from './scenarios.js';
import type { SideName } from './sides.js';
import { type Spread, spreadOf } from './statistics.js';

/** One side in one scenario, over all rounds. */
export interface SideSummary {
  readonly side: SideName;
  readonly work: Work;
  readonly scenario: string;
  readonly stepsPerSecond: Spread;
  readonly workflowsPerSecond: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  /** From the call that enqueues until the workflow's code runs. */
  readonly startP50Ms: number | null;
  readonly startP99Ms: number | null;
  readonly clientCpuMsPerWorkflow: number;
  readonly serverCpuMsPerWorkflow: number | null;
  readonly walBytesPerStep: number;
  /** The worst of the rounds. */
  readonly foreignCpuShare: number | null;
}

/** How many times better than another loop Holdfast is, each ratio of two neighbouring windows of one round. */
export interface Comparison {
  readonly scenario: string;
  readonly to: 'dbos' | `bare ${Work}`;
  readonly ratio: Spread;
  readonly target: number | null;
}

export function summarise(measurements: readonly Measurement[]): readonly SideSummary[] {
  const groups = new Map<string, Measurement[]>();
  for (const measurement of measurements) {
    const key = `${measurement.scenario} ${measurement.side} ${measurement.work}`;
    groups.set(key, [...(groups.get(key) ?? []), measurement]);
  }
  return [...groups.values()].flatMap(summariseGroup);
}

function summariseGroup(group: readonly Measurement[]): readonly SideSummary[] {
  const [first] = group;
  const stepsPerSecond = spreadOf(group.map((one) => one.stepsPerSecond));
  if (first === undefined || stepsPerSecond === null) return [];
  const median = (read: (one: Measurement) => number | null | undefined): number | null =>
    spreadOf(group.map(read).filter((value) => typeof value === 'number'))?.median ?? null;
  return [
    {
      side: first.side,
      work: first.work,
      scenario: first.scenario,
      stepsPerSecond,
      workflowsPerSecond: median((one) => one.workflowsPerSecond) ?? 0,
      p50Ms: median((one) => one.latencyMs?.p50),
      p99Ms: median((one) => one.latencyMs?.p99),
      startP50Ms: median((one) => one.startDelayMs?.p50),
      startP99Ms: median((one) => one.startDelayMs?.p99),
      clientCpuMsPerWorkflow: median((one) => one.clientCpuMsPerWorkflow) ?? 0,
      serverCpuMsPerWorkflow: median((one) => one.serverCpuMsPerWorkflow),
      walBytesPerStep: median((one) => one.walBytesPerStep) ?? 0,
      foreignCpuShare: spreadOf(group.map((one) => one.foreignCpuShare).filter((share) => share !== null))?.max ?? null,
    },
  ];
}

/** Compares within rounds only: what disturbs a machine for minutes disturbs both windows of a pair. */
export function compare(scenarios: readonly Scenario[], measurements: readonly Measurement[]): readonly Comparison[] {
  return scenarios.flatMap((scenario) => {
    const mine = measurements.filter((one) => one.scenario === scenario.name);
    const against = (to: Comparison['to'], side: SideName, work: Work, target: number | undefined): Comparison[] => {
      const ratio = spreadOf(ratiosTo(mine, side, work, scenario.compares));
      return ratio === null ? [] : [{ scenario: scenario.name, to, ratio, target: target ?? null }];
    };
    return [
      ...against('dbos', 'dbos', scenario.work, scenario.targets.dbos),
      ...against('bare checkpoint', 'bare', 'checkpoint', scenario.targets.bareCheckpoint),
      ...against('bare transaction', 'bare', 'transaction', undefined),
      ...against('bare checked-transaction', 'bare', 'checked-transaction', scenario.targets.checkedTransaction),
      ...against('bare workflow', 'bare', 'workflow', undefined),
    ];
  });
}

function ratiosTo(
  measurements: readonly Measurement[],
  side: SideName,
  work: Work,
  compares: Scenario['compares'],
): number[] {
  return measurements
    .filter((one) => one.side === 'holdfast')
    .flatMap((holdfast) => {
      const other = measurements.find((one) => one.side === side && one.work === work && one.round === holdfast.round);
      if (other === undefined) return [];
      if (compares === 'rate') return [holdfast.stepsPerSecond / other.stepsPerSecond];
      // In whole windows without an end there is nothing to compare.
      if (other.latencyMs === null || holdfast.latencyMs === null) return [];
      return [other.latencyMs.p50 / holdfast.latencyMs.p50];
    });
}
