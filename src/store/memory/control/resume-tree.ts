import type { WorkflowStatus } from '../../../api/workflow-handle.js';
import { compareBytes } from '../byte-order.js';
import { retakeDeduplication } from '../deduplication.js';
import type { MemoryDatabase } from '../memory-database.js';
import { raiseVersion } from '../record-result.js';
import { markerOf } from '../rollback.js';
import { endOwnership } from '../start.js';
import type { AuditRow, Workflow } from '../tables.js';
import { recordControl, type Act } from './audit.js';
import type { Cascade } from './cancel-tree.js';

export interface ResumeTreeOptions {
  readonly act: Act;
  /** Statuses to be resumed from; of children it is always CANCELLED. */
  readonly from: readonly WorkflowStatus[];
  readonly cascade?: Cascade;
  /** Of the act on the workflows themselves, where it is not a plain resume: the audit has the act's verb and this. */
  readonly detail?: AuditRow['detail'];
}

/** Makes these claimable again and, level by level, their children that a cancel took along; see resume_tree. */
export function resumeTree(db: MemoryDatabase, workflowIds: readonly string[], options: ResumeTreeOptions): void {
  let { from, cascade } = options;
  let { detail } = options;
  let level = workflowsOf(db, workflowIds, from);
  for (let first = level[0]; first !== undefined; first = level[0]) {
    for (const workflow of level) resumeOne(db, workflow, options.act, { cascade, detail });
    detail = undefined;
    cascade ??= { root: first.workflowId, by: 'resume' };
    from = ['CANCELLED'];
    level = workflowsOf(
      db,
      level.flatMap((parent) => unresolvedChildren(db, parent)),
      from,
    );
  }
}

/** Children that are to end with this parent, and whose outcome it has not recorded yet; see unresolved_children. */
export function unresolvedChildren(db: MemoryDatabase, parent: Workflow): string[] {
  if (markerOf(parent) !== undefined) return [];
  const resolved = new Set([...parent.results.values()].map(({ childId }) => childId));
  const started = [...parent.intents.values()].map(({ childId }) => childId).filter((childId) => childId !== null);
  return [...new Set(started)].filter((childId) => {
    const link = db.workflows.get(childId)?.parent;
    return !resolved.has(childId) && link?.workflowId === parent.workflowId && link.close === 'cancel';
  });
}

/** Takes a workflow's outcome, if it has one, and makes it claimable with a fresh budget of attempts and a fresh deadline. */
export function beginAnew(db: MemoryDatabase, workflow: Workflow): void {
  const now = db.now();
  raiseVersion(db, workflow);
  workflow.outcome = null;
  workflow.status = 'ENQUEUED';
  workflow.ownerToken = null;
  workflow.attempts = 0;
  workflow.wakeAt = null;
  workflow.deadline = workflow.queue === null && workflow.timeoutMs !== null ? now + workflow.timeoutMs : null;
  workflow.attention = null;
  workflow.attentionDetail = null;
  workflow.completedAt = null;
  db.waits.delete(workflow.workflowId);
  retakeDeduplication(db, workflow);
}

function resumeOne(
  db: MemoryDatabase,
  workflow: Workflow,
  act: Act,
  { cascade, detail }: { readonly cascade: Cascade | undefined; readonly detail: AuditRow['detail'] | undefined },
): void {
  const { workflowId, status: statusBefore, attention } = workflow;
  endOwnership(workflow, db.now(), 'resume', act.auditId);
  beginAnew(db, workflow);
  recordControl(
    db,
    workflowId,
    {
      ...act,
      verb: detail === undefined ? 'resume' : act.verb,
      statusBefore,
      statusAfter: 'ENQUEUED',
      detail: detail ?? { cascadedFrom: cascade?.root, cascadedBy: cascade?.by, attention },
    },
    { wakes: true },
  );
}

function workflowsOf(db: MemoryDatabase, workflowIds: readonly string[], from: readonly WorkflowStatus[]): Workflow[] {
  return [...new Set(workflowIds)]
    .map((workflowId) => db.workflows.get(workflowId))
    .filter((workflow) => workflow !== undefined)
    .filter(({ status }) => from.includes(status))
    .sort((one, other) => compareBytes(one.workflowId, other.workflowId));
}
