import type { MemoryDatabase } from './memory-database.js';
import { raiseVersion } from './record-result.js';

/** Has a workflow looked at again; see wake_up. */
export function wakeUp(db: MemoryDatabase, workflowId: string): void {
  db.wakeUps.add(workflowId);
  if (db.workflows.get(workflowId)?.status === 'SUSPENDED') db.notify({ topic: 'work' });
}

/** Has the suspended workflows looked at again that wait for an outcome or an event of this one; see wake_waiters. */
export function wakeWaiters(db: MemoryDatabase, workflowId: string): void {
  let found = false;
  for (const [waiterId, targetIds] of db.waits) {
    if (!targetIds.has(workflowId)) continue;
    db.wakeUps.add(waiterId);
    found = true;
  }
  if (found) db.notify({ topic: 'work' });
}

/** Makes those due at once that are suspended and have been woken; see drain_wakeups. */
export function drainWakeUps(db: MemoryDatabase): void {
  const now = db.now();
  for (const workflowId of db.wakeUps) {
    const workflow = db.workflows.get(workflowId);
    if (workflow?.status !== 'SUSPENDED' || (workflow.wakeAt !== null && workflow.wakeAt <= now)) continue;
    workflow.wakeAt = now;
    raiseVersion(db, workflow);
  }
  db.wakeUps.clear();
}
