import type { MemoryDatabase } from '../memory-database.js';
import { endOwnership } from '../start.js';
import type { AuditRow } from '../tables.js';

/** Who does what, and why; one call of a verb, which may reach several workflows. */
export interface Act {
  /** The call's nonce. */
  readonly auditId: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
}

export function addAudit(db: MemoryDatabase, workflowId: string, act: Omit<AuditRow, 'actedAt'>): void {
  const rows = db.audit.get(workflowId) ?? [];
  db.audit.set(workflowId, rows);
  rows.push({ ...act, detail: withoutNulls(act.detail), actedAt: db.now() });
}

/** The last thing that a control operation does to a workflow; see record_control. */
export function recordControl(
  db: MemoryDatabase,
  workflowId: string,
  act: Omit<AuditRow, 'actedAt'>,
  { wakes }: { readonly wakes: boolean },
): void {
  const workflow = db.workflows.get(workflowId);
  if (workflow !== undefined) endOwnership(workflow, db.now(), act.verb, act.auditId);
  addAudit(db, workflowId, act);
  db.notify({ topic: 'control', workflowId });
  db.notify(wakes ? { topic: 'work' } : { topic: 'outcome', workflowIds: [workflowId] });
}

function withoutNulls(detail: AuditRow['detail']): AuditRow['detail'] {
  if (detail === null) return null;
  const entries = Object.entries(detail).filter(([, value]) => value !== null && value !== undefined);
  return entries.length === 0 ? null : Object.fromEntries(entries);
}
