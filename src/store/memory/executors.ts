import type { ExecutorIdentity, ExecutorRegistration, HeartbeatAnswer, OwnedWorkflow } from '../store.js';
import type { MemoryDatabase } from './memory-database.js';
import type { ExecutorRow, Workflow } from './tables.js';

/** How long rows of processes that are gone stay, in milliseconds: those that have a successor, and an ID's newest one. */
const KEPT_MS = { superseded: 86_400_000, newest: 7 * 86_400_000 };

/** Registers an executor and returns its incarnation; see register_executor. */
export function registerExecutor(
  db: MemoryDatabase,
  { executorId, appVersion, leaseMs }: ExecutorRegistration,
): number {
  const now = db.now();
  for (const row of db.executors) {
    if (row.executorId === executorId) row.leaseUntil = Math.min(row.leaseUntil, now);
  }
  addForgotten(db, now);
  const incarnation = newestIncarnation(db, executorId) + 1;
  db.executors.push({ executorId, incarnation, appVersion, leaseUntil: now + leaseMs });
  forgetGone(db, now);
  return incarnation;
}

/** Extends an executor's lease; see heartbeat. */
export function heartbeat(
  db: MemoryDatabase,
  { executorId, incarnation }: ExecutorIdentity,
  leaseMs: number,
): HeartbeatAnswer {
  const clockMs = db.now();
  if (newestIncarnation(db, executorId) > incarnation) return { state: 'superseded', clockMs };
  const row = findExecutor(db, { executorId, incarnation });
  if (row === undefined) return { state: 'unregistered', clockMs };
  row.leaseUntil = clockMs + leaseMs;
  return { state: 'renewed', clockMs };
}

/** What an executor still owns can be claimed at once; see deregister_executor. */
export function deregisterExecutor(db: MemoryDatabase, executor: ExecutorIdentity): void {
  const row = findExecutor(db, executor);
  if (row !== undefined) row.leaseUntil = Math.min(row.leaseUntil, db.now());
  db.notify({ topic: 'work' });
}

export function ownedWorkflows(db: MemoryDatabase, executor: ExecutorIdentity): OwnedWorkflow[] {
  return [...db.workflows.values()].flatMap((workflow) => {
    const { workflowId, ownerToken: token, recordVersion } = workflow;
    return token !== null && isOwnedBy(workflow, executor) ? [{ workflowId, token, recordVersion }] : [];
  });
}

export function isOwnedBy(workflow: Workflow, { executorId, incarnation }: ExecutorIdentity): boolean {
  return workflow.status === 'PENDING' && workflow.executorId === executorId && workflow.incarnation === incarnation;
}

export function findExecutor(
  db: MemoryDatabase,
  { executorId, incarnation }: ExecutorIdentity,
): ExecutorRow | undefined {
  return db.executors.find((row) => row.executorId === executorId && row.incarnation === incarnation);
}

/** An executor whose row was cleared away may have come back and started workflows: they need an expired lease. */
function addForgotten(db: MemoryDatabase, now: number): void {
  for (const { status, executorId, incarnation } of db.workflows.values()) {
    if (status !== 'PENDING' || executorId === null || incarnation === null) continue;
    if (findExecutor(db, { executorId, incarnation }) !== undefined) continue;
    db.executors.push({ executorId, incarnation, appVersion: '', leaseUntil: now });
  }
}

function forgetGone(db: MemoryDatabase, now: number): void {
  const workflows = [...db.workflows.values()];
  const isGone = (row: ExecutorRow): boolean => {
    const isNewest = newestIncarnation(db, row.executorId) === row.incarnation;
    const keptMs = isNewest ? KEPT_MS.newest : KEPT_MS.superseded;
    return row.leaseUntil < now - keptMs && !workflows.some((workflow) => isOwnedBy(workflow, row));
  };
  const gone = db.executors.filter(isGone);
  for (const row of gone) db.executors.splice(db.executors.indexOf(row), 1);
}

function newestIncarnation(db: MemoryDatabase, executorId: string): number {
  return db.executors.reduce(
    (newest, row) => (row.executorId === executorId ? Math.max(newest, row.incarnation) : newest),
    0,
  );
}
