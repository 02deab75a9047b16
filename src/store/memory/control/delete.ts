import type { ControlAnswer, DeleteOptions } from '../../admin-store.js';
import { dropHeldBy } from '../deduplication.js';
import type { MemoryDatabase } from '../memory-database.js';
import { isTerminal, type Workflow } from '../tables.js';
import { wakeWaiters } from '../wake-ups.js';
import { recordControl, type Act } from './audit.js';
import { cancelTree, childrenToCancel } from './cancel-tree.js';

/** Deletes a workflow: everything but its audit; see delete_workflow. */
export function deleteWorkflow(
  db: MemoryDatabase,
  workflow: Workflow,
  act: Act,
  { force, childError }: DeleteOptions,
): ControlAnswer {
  const { workflowId, status } = workflow;
  const isLive = !isTerminal(status);
  if (isLive && !force) return { kind: 'refused', refusal: { kind: 'status' }, status };
  const awaitedBy = whoAwaits(db, workflowId);
  if (awaitedBy !== undefined && !force) {
    return { kind: 'refused', refusal: { kind: 'awaited', by: awaitedBy }, status };
  }
  // What it has added to the outbox is delivered all the same; a later workflow of this ID has no say in it.
  for (const row of db.outbox) if (row.workflowId === workflowId) row.seq = null;
  db.workflows.delete(workflowId);
  db.waits.delete(workflowId);
  dropHeldBy(db, workflowId);
  wakeWaiters(db, workflowId);
  const detail = { force: force ? true : null, awaitedBy };
  recordControl(db, workflowId, { ...act, statusBefore: status, statusAfter: null, detail }, { wakes: false });
  if (isLive) {
    const cascade = { root: workflowId, by: 'delete' };
    const children = childrenToCancel(db, [workflowId]);
    cancelTree(db, children, { act, error: childError, children: 'cancel', cascade });
  }
  // What is left of its children ends with nobody, least of all with a later workflow of this ID.
  for (const child of db.workflows.values()) {
    const { parent } = child;
    if (parent?.workflowId !== workflowId || parent.close !== 'cancel') continue;
    child.parent = { ...parent, close: 'abandon' };
    child.recordVersion += 1;
  }
  return { kind: 'done', statusBefore: status, statusAfter: null };
}

/** A workflow that has not ended, started or attached to this one, and has not recorded its outcome. */
function whoAwaits(db: MemoryDatabase, workflowId: string): string | undefined {
  for (const { workflowId: by, status, intents, results } of db.workflows.values()) {
    if (isTerminal(status)) continue;
    const hasStarted = [...intents.values()].some(({ childId }) => childId === workflowId);
    if (hasStarted && ![...results.values()].some(({ childId }) => childId === workflowId)) return by;
  }
  return undefined;
}
