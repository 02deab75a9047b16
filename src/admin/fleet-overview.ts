import type { OverviewRow } from '../store/admin-store.js';
import type { FleetOverview, UnservedVersion } from './admin-answers.js';

/** Puts the numbers of an overview together. */
export function fleetOverview(
  rows: readonly OverviewRow[],
  unservedVersions: readonly UnservedVersion[],
): FleetOverview {
  const of = (kind: OverviewRow['kind'], name: string | null): number =>
    rows.find((row) => row.kind === kind && row.name === name)?.amount ?? 0;
  const named = (kind: OverviewRow['kind']): string[] =>
    rows
      .filter((row) => row.kind === kind)
      .flatMap(({ name }) => name ?? [])
      .sort();
  return {
    executors: named('executors').map((appVersion) => ({ appVersion, count: of('executors', appVersion) })),
    waiting: of('waiting', null),
    queues: named('waiting').map((name) => ({ name, waiting: of('waiting', name), running: of('running', name) })),
    delayed: of('delayed', null),
    attention: of('attention', null),
    outbox: { pending: of('outbox', null), dead: of('dead', null), lagSeconds: of('lag', null) },
    unservedVersions,
  };
}
