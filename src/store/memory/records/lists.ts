import type { AuditRow, OwnershipRow, PageQuery, RecordPage, StepRow } from '../../admin-store.js';
import type { CursorForm } from '../../record-cursor.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { AuditRow as StoredAudit, IntentRow, ResultRow, Workflow } from '../tables.js';
import { bytesOf, pageOf, toDate } from './page.js';

const STEPS: CursorForm = { list: 'steps', parts: ['number'] };
const OWNERSHIP: CursorForm = { list: 'ownership', parts: ['number'] };
const AUDIT: CursorForm = { list: 'audit', parts: ['number'] };

/** See list_steps. */
export function listSteps(
  db: MemoryDatabase,
  workflowId: string,
  query: PageQuery & { readonly payload: boolean },
): RecordPage<StepRow> | null {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return null;
  const open = [...workflow.intents.values()].filter(({ seq }) => !workflow.results.has(seq));
  const rows = [...workflow.results.values(), ...open].sort((one, other) => one.seq - other.seq);
  return pageOf(rows, query, {
    form: STEPS,
    partsOf: ({ seq }) => [String(seq)],
    isAfter: ({ seq }, [after = '']) => seq > Number(after),
    itemOf: (row) => toStep(workflow, row, query.payload),
    bytesOf: (row) => (query.payload && 'output' in row ? bytesOf(row.output, row.error, row.attemptErrors) : 0),
  });
}

/** See list_ownership. */
export function listOwnership(
  db: MemoryDatabase,
  workflowId: string,
  query: PageQuery,
): RecordPage<OwnershipRow> | null {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return null;
  return pageOf(workflow.ownerships.toReversed(), query, {
    form: OWNERSHIP,
    partsOf: ({ epoch }) => [String(epoch)],
    isAfter: ({ epoch }, [before = '']) => epoch < Number(before),
    itemOf: ({ nonce: _, ...row }) => ({ ...row, ownedAt: new Date(row.ownedAt), endedAt: toDate(row.endedAt) }),
  });
}

/** See list_audit. */
export function listAudit(db: MemoryDatabase, workflowId: string, query: PageQuery): RecordPage<AuditRow> {
  const rows = (db.audit.get(workflowId) ?? []).map((row, place) => ({ row, place })).toReversed();
  return pageOf(rows, query, {
    form: AUDIT,
    partsOf: ({ place }) => [String(place)],
    isAfter: ({ place }, [before = '']) => place < Number(before),
    itemOf: ({ row }) => toAudit(row),
  });
}

function toStep({ intents }: Workflow, row: ResultRow | IntentRow, payload: boolean): StepRow {
  const { seq, name, kind, childId, recordVersion, epoch } = row;
  const isComplete = 'output' in row;
  return {
    seq,
    name,
    kind,
    complete: isComplete,
    attempts: row.attempts,
    childId,
    wakeAt: toDate(intents.get(seq)?.wakeAt ?? null),
    recordVersion,
    epoch,
    startedAt: new Date(isComplete ? row.startedAt : row.recordedAt),
    completedAt: isComplete ? new Date(row.completedAt) : null,
    payload: payload
      ? {
          output: isComplete ? row.output : null,
          error: isComplete ? row.error : null,
          attemptErrors: isComplete ? row.attemptErrors : null,
        }
      : null,
  };
}

function toAudit({ detail, actedAt, ...row }: StoredAudit): AuditRow {
  return { ...row, detail: detail === null ? null : JSON.stringify(detail), actedAt: new Date(actedAt) };
}
