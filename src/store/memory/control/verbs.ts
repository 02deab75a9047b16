import type { ControlAnswer } from '../../admin-store.js';
import type { MemoryDatabase } from '../memory-database.js';
import { unspendAttempt } from '../complete.js';
import { raiseVersion } from '../record-result.js';
import { isTerminal, type AuditRow, type Workflow } from '../tables.js';
import { addAudit, recordControl, type Act } from './audit.js';
import { cancelTree } from './cancel-tree.js';
import { resumeTree } from './resume-tree.js';

/** What a verb does to a workflow that is there. */
type Verb = (workflow: Workflow) => ControlAnswer;

/** The beginning of every control operation; see begin_control. */
export function control(db: MemoryDatabase, workflowId: string, { auditId }: Act, verb: Verb): ControlAnswer {
  const earlier = findAct(db, workflowId, auditId);
  // This very call has taken effect, and its reply was lost.
  if (earlier !== undefined) {
    return { kind: 'done', statusBefore: earlier.statusBefore, statusAfter: earlier.statusAfter };
  }
  const workflow = db.workflows.get(workflowId);
  return workflow === undefined ? { kind: 'missing' } : verb(workflow);
}

export function findAct(db: MemoryDatabase, workflowId: string, auditId: string): AuditRow | undefined {
  return db.audit.get(workflowId)?.find((row) => row.auditId === auditId);
}

/** See cancel_workflow. */
export function cancel(
  db: MemoryDatabase,
  { workflowId, status }: Workflow,
  act: Act,
  options: { readonly error: string; readonly children: 'cancel' | 'keep' },
): ControlAnswer {
  if (isTerminal(status)) return { kind: 'unchanged', status };
  cancelTree(db, [workflowId], { act, ...options });
  return { kind: 'done', statusBefore: status, statusAfter: 'CANCELLED' };
}

/** See resume_workflow. */
export function resume(db: MemoryDatabase, { workflowId, status }: Workflow, act: Act): ControlAnswer {
  if (status === 'ENQUEUED' || status === 'PENDING') return { kind: 'unchanged', status };
  if (status === 'SUCCESS' || status === 'ERROR') return { kind: 'refused', refusal: { kind: 'status' }, status };
  resumeTree(db, [workflowId], { act, from: [status] });
  return { kind: 'done', statusBefore: status, statusAfter: 'ENQUEUED' };
}

/** See prioritize_workflow. */
export function prioritize(db: MemoryDatabase, workflow: Workflow, act: Act, priority: number): ControlAnswer {
  const { workflowId, status, priority: before } = workflow;
  if (isTerminal(status)) return { kind: 'refused', refusal: { kind: 'status' }, status };
  if (before === priority) return { kind: 'unchanged', status };
  raiseVersion(db, workflow);
  workflow.priority = priority;
  const detail = { from: before, to: priority };
  addAudit(db, workflowId, { ...act, statusBefore: status, statusAfter: status, detail });
  return { kind: 'done', statusBefore: status, statusAfter: status };
}

/** See set_app_version. */
export function setAppVersion(db: MemoryDatabase, workflow: Workflow, act: Act, appVersion: string): ControlAnswer {
  const { workflowId, status, appVersion: from } = workflow;
  if (isTerminal(status)) return { kind: 'refused', refusal: { kind: 'status' }, status };
  if (runsOnAnyVersion(workflow) || from === appVersion) return { kind: 'unchanged', status };
  const statusAfter = status === 'PENDING' ? 'ENQUEUED' : status;
  raiseVersion(db, workflow);
  // Taking it away from an execution is not an attempt of it.
  if (status === 'PENDING') unspendAttempt(workflow);
  workflow.status = statusAfter;
  workflow.ownerToken = null;
  workflow.appVersion = appVersion;
  const detail = { from, to: appVersion };
  recordControl(db, workflowId, { ...act, statusBefore: status, statusAfter, detail }, { wakes: true });
  return { kind: 'done', statusBefore: status, statusAfter };
}

/** Nothing is recorded that code would have to fit. */
export function runsOnAnyVersion({ anyVersion, epoch, forkedFrom }: Workflow): boolean {
  return anyVersion || (epoch === 0 && forkedFrom === null);
}
