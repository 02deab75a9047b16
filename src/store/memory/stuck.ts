import { end, giveUp } from './complete.js';
import { addAudit } from './control/audit.js';
import type { MemoryDatabase } from './memory-database.js';

/** Whose execution makes no progress. By token alone: the version is what keeps moving. */
interface Stuck {
  readonly workflowId: string;
  readonly token: string;
}

/** Ends a workflow that makes no progress; see fail_stuck_workflow. */
export function failStuck(db: MemoryDatabase, { workflowId, token }: Stuck, error: string, nonce: string): void {
  const workflow = db.workflows.get(workflowId);
  if (workflow?.ownerToken !== token) return;
  giveUp(db, workflow, nonce, 'stuck');
  end(db, workflow, { status: 'ERROR', output: null, error, nonce });
  workflow.attention = 'STUCK';
  workflow.attentionDetail = 'No progress: see the recorded error.';
  addAudit(db, workflowId, {
    auditId: nonce,
    verb: 'fail',
    actor: 'holdfast',
    reason: 'no progress',
    statusBefore: 'PENDING',
    statusAfter: 'ERROR',
    detail: null,
  });
}

/** Lists a workflow for attention, or takes that back; see mark_stuck. */
export function markStuck(db: MemoryDatabase, { workflowId, token }: Stuck, detail: string | null): void {
  const workflow = db.workflows.get(workflowId);
  if (workflow?.ownerToken !== token) return;
  if (detail === null && workflow.attention !== 'STUCK') return;
  workflow.attention = detail === null ? null : 'STUCK';
  workflow.attentionDetail = detail;
  workflow.recordVersion += 1;
}
