import type { Scenario } from './scenarios.js';
import type { Spread } from './statistics.js';
import type { Comparison, SideSummary } from './summary.js';
import { renderTable } from './table.js';

/** The tables for stdout. */
export function renderReport(
  scenarios: readonly Scenario[],
  summaries: readonly SideSummary[],
  comparisons: readonly Comparison[],
): string {
  return [
    'Steps per second: Holdfast and its peer',
    renderPeers(
      scenarios.filter(({ queue, work }) => queue === null && work !== 'transaction'),
      summaries,
      comparisons,
    ),
    'Workflows per second through a queue, enqueuing included: Holdfast and its peer',
    renderPeers(
      scenarios.filter(({ queue, compares }) => queue !== null && compares === 'rate'),
      summaries,
      comparisons,
    ),
    'Latency of a queue in ms, medians: Holdfast and its peer',
    renderLatencies(
      scenarios.filter(({ compares }) => compares === 'latency'),
      summaries,
      comparisons,
    ),
    'Steps per second: Holdfast and a bare client (transactions: a pool, else one connection)',
    renderLimits(summaries, comparisons),
    'Costs (medians)',
    renderCosts(summaries),
    ...warnOfOthers(summaries),
  ].join('\n\n');
}

function renderPeers(
  scenarios: readonly Scenario[],
  summaries: readonly SideSummary[],
  comparisons: readonly Comparison[],
): string {
  const rows = scenarios.map(({ name }) => {
    const of = (side: 'dbos' | 'holdfast'): string => {
      const found = summaries.find((one) => one.scenario === name && one.side === side);
      return found === undefined ? '-' : whole(found.stepsPerSecond.median);
    };
    const comparison = comparisons.find((one) => one.scenario === name && one.to === 'dbos');
    return [name, of('dbos'), of('holdfast'), ...verdict(comparison)];
  });
  return renderTable(['scenario', 'dbos', 'holdfast', 'ratio (min–max)', 'target', ''], rows);
}

function renderLatencies(
  scenarios: readonly Scenario[],
  summaries: readonly SideSummary[],
  comparisons: readonly Comparison[],
): string {
  const rows = scenarios.flatMap(({ name, targets }) => {
    const of = (side: 'dbos' | 'holdfast'): SideSummary | undefined =>
      summaries.find((one) => one.scenario === name && one.side === side);
    const [peer, own] = [of('dbos'), of('holdfast')];
    const comparison = comparisons.find((one) => one.scenario === name && one.to === 'dbos');
    const startP50Ms = own?.startP50Ms ?? null;
    const most = targets.startDelayMs;
    return [
      [`${name} enqueue → result`, fixed(peer?.p50Ms ?? null), fixed(own?.p50Ms ?? null), ...verdict(comparison)],
      [
        `${name} enqueue → start`,
        fixed(peer?.startP50Ms ?? null),
        fixed(startP50Ms),
        '',
        most === undefined ? '-' : `≤ ${String(most)} ms`,
        most === undefined || startP50Ms === null ? '' : startP50Ms <= most ? 'reached' : 'MISSED',
      ],
    ];
  });
  return renderTable(['scenario', 'dbos', 'holdfast', 'ratio (min–max)', 'target', ''], rows);
}

function renderLimits(summaries: readonly SideSummary[], comparisons: readonly Comparison[]): string {
  const rows = summaries
    .filter((one) => one.side === 'bare')
    .map((limit) => {
      const holdfast = summaries.find((one) => one.scenario === limit.scenario && one.side === 'holdfast');
      const comparison = comparisons.find((one) => one.scenario === limit.scenario && one.to === `bare ${limit.work}`);
      return [
        `${limit.scenario} ${limit.work}`,
        whole(limit.stepsPerSecond.median),
        holdfast === undefined ? '-' : whole(holdfast.stepsPerSecond.median),
        ...verdict(comparison),
      ];
    });
  return renderTable(['loop', 'bare', 'holdfast', 'ratio (min–max)', 'target', ''], rows);
}

function renderCosts(summaries: readonly SideSummary[]): string {
  const rows = summaries.map((one) => [
    `${one.scenario} ${one.side}${one.side === 'bare' ? ` ${one.work}` : ''}`,
    `${whole(one.stepsPerSecond.min)}–${whole(one.stepsPerSecond.max)}`,
    whole(one.workflowsPerSecond),
    fixed(one.p50Ms),
    fixed(one.p99Ms),
    fixed(one.clientCpuMsPerWorkflow),
    fixed(one.serverCpuMsPerWorkflow),
    whole(one.walBytesPerStep),
    one.foreignCpuShare === null ? '-' : `${whole(one.foreignCpuShare * 100)} %`,
  ]);
  return renderTable(
    [
      '',
      'steps/s min–max',
      'workflows/s',
      'p50 ms',
      'p99 ms',
      'client CPU ms/wf',
      'server CPU ms/wf',
      'WAL B/step',
      'others ≤',
    ],
    rows,
  );
}

/** Beyond this share of the machine's CPU, what else runs on it decides about the figures. */
const MAX_FOREIGN_CPU_SHARE = 0.1;

function warnOfOthers(summaries: readonly SideSummary[]): readonly string[] {
  const worst = Math.max(0, ...summaries.map((one) => one.foreignCpuShare ?? 0));
  if (worst <= MAX_FOREIGN_CPU_SHARE) return [];
  return [
    `WARNING: other programs used up to ${whole(worst * 100)} % of this machine's CPU time in a window. Repeat this on an idle machine.`,
  ];
}

function verdict(comparison: Comparison | undefined): readonly [string, string, string] {
  if (comparison === undefined) return ['-', '-', ''];
  const { ratio, target } = comparison;
  if (target === null) return [renderRatio(ratio), '-', ''];
  return [renderRatio(ratio), `≥ ${String(target)}`, ratio.median >= target ? 'reached' : 'MISSED'];
}

function renderRatio(ratio: Spread): string {
  return `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function fixed(value: number | null): string {
  return value === null ? '-' : value.toFixed(2);
}
