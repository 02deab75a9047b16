import type { OverviewRow, UnservedVersionRow } from '../../admin-store.js';
import { compareBytes } from '../byte-order.js';
import { runsOnAnyVersion } from '../control/verbs.js';
import { findExecutor } from '../executors.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { Workflow } from '../tables.js';

/** See unserved_versions. */
export function unservedVersions(db: MemoryDatabase, limit: number): UnservedVersionRow[] {
  const waiting = [...db.workflows.values()].filter((workflow) => waitsForVersion(db, workflow));
  const served = new Set(liveExecutors(db).map(({ appVersion }) => appVersion));
  const versions = [...new Set(waiting.map(({ appVersion }) => appVersion))].filter((version) => !served.has(version));
  return versions.sort(compareBytes).map((appVersion) => {
    const counted = waiting.filter((workflow) => workflow.appVersion === appVersion).slice(0, limit);
    const since = new Date(Math.min(...counted.map(({ updatedAt }) => updatedAt)));
    return { appVersion, workflows: counted.length, since };
  });
}

/** See fleet_overview. */
export function overview(db: MemoryDatabase, limit: number): OverviewRow[] {
  const count = (isCounted: (workflow: Workflow) => boolean): number =>
    Math.min(limit, [...db.workflows.values()].filter(isCounted).length);
  const versions = liveExecutors(db).map(({ appVersion }) => appVersion);
  const queues = [...db.queues.keys()];
  return [
    ...[...new Set(versions)].map((name): OverviewRow => ({
      kind: 'executors',
      name,
      amount: versions.filter((version) => version === name).length,
    })),
    { kind: 'waiting', name: null, amount: count(({ status, queue }) => status === 'ENQUEUED' && queue === null) },
    ...queues.map((name): OverviewRow => ({
      kind: 'waiting',
      name,
      amount: count(({ status, queue }) => status === 'ENQUEUED' && queue === name),
    })),
    ...queues.map((name): OverviewRow => ({
      kind: 'running',
      name,
      amount: count((row) => row.queue === name && holdsSlot(row)),
    })),
    { kind: 'delayed', name: null, amount: count(({ status }) => status === 'DELAYED' || status === 'SUSPENDED') },
    { kind: 'attention', name: null, amount: count(({ attention }) => attention !== null) },
    ...outboxNumbers(db, limit),
  ];
}

function outboxNumbers(db: MemoryDatabase, limit: number): OverviewRow[] {
  const [oldest] = db.outbox.filter(({ diedAt }) => diedAt === null);
  const dead = db.outbox.filter(({ diedAt }) => diedAt !== null).length;
  const lagMs = oldest === undefined ? undefined : Math.max(0, db.now() - oldest.addedAt);
  return [
    { kind: 'outbox', name: null, amount: Math.min(limit, db.outbox.length - dead) },
    { kind: 'dead', name: null, amount: Math.min(limit, dead) },
    ...(lagMs === undefined ? [] : [{ kind: 'lag' as const, name: null, amount: Math.round(lagMs / 1_000) }]),
  ];
}

function liveExecutors(db: MemoryDatabase): MemoryDatabase['executors'] {
  return db.executors.filter(({ leaseUntil }) => leaseUntil > db.now());
}

/** What waits in line, for a moment or for a message, or was left by a dead executor. */
function waitsForVersion(db: MemoryDatabase, workflow: Workflow): boolean {
  const { status, executorId, incarnation } = workflow;
  if (status === 'PENDING') {
    const owner =
      executorId === null || incarnation === null ? undefined : findExecutor(db, { executorId, incarnation });
    return owner !== undefined && owner.leaseUntil <= db.now();
  }
  const isWaiting = status === 'ENQUEUED' || status === 'DELAYED' || status === 'SUSPENDED';
  return isWaiting && !runsOnAnyVersion(workflow);
}

function holdsSlot({ status }: Workflow): boolean {
  return status === 'PENDING' || status === 'SUSPENDED';
}
