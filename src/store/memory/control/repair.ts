import type { ControlAnswer, ControlRefusal, RepairOptions } from '../../admin-store.js';
import type { WorkflowStatus } from '../../../api/workflow-handle.js';
import { findExecutor } from '../executors.js';
import type { MemoryDatabase } from '../memory-database.js';
import { raiseVersion } from '../record-result.js';
import { markerOf } from '../rollback.js';
import type { AuditRow, IntentRow, ResultRow, Workflow } from '../tables.js';
import { unknownOutcomes } from '../unknown.js';
import { recordControl, type Act } from './audit.js';
import { resumeTree } from './resume-tree.js';

/** A person says what became of a step; see repair_step. */
export function repairStep(db: MemoryDatabase, workflow: Workflow, act: Act, options: RepairOptions): ControlAnswer {
  const { status, attention } = workflow;
  const failed = workflow.results.get(options.seq);
  const intent = workflow.intents.get(options.seq);
  const refusal = isOwned(db, workflow) ? ({ kind: 'owned' } as const) : refusalOf(workflow, options, failed ?? intent);
  if (refusal !== undefined) return { kind: 'refused', refusal, status };
  record(db, workflow, act, options);
  const detail = {
    seq: options.seq,
    step: failed?.name ?? intent?.name,
    repair: options.repair,
    replaces: failed === undefined ? null : 'error',
    attention,
  };
  const statusAfter =
    failed !== undefined || options.resume
      ? runAgain(db, workflow, act, detail)
      : stay(db, workflow, { ...act, statusBefore: status, detail });
  return { kind: 'done', statusBefore: status, statusAfter };
}

/** By an execution whose executor is alive. */
function isOwned(db: MemoryDatabase, { ownerToken, executorId, incarnation }: Workflow): boolean {
  if (ownerToken === null || executorId === null || incarnation === null) return false;
  const executor = findExecutor(db, { executorId, incarnation });
  return executor !== undefined && executor.leaseUntil > db.now();
}

function refusalOf(
  workflow: Workflow,
  { seq, repair, resume }: RepairOptions,
  found: ResultRow | IntentRow | undefined,
): ControlRefusal | undefined {
  if (found === undefined) return { kind: 'unrecorded' };
  if (found.kind !== 'step') return { kind: 'kind', found: found.kind };
  const isResult = 'output' in found;
  if (isResult && found.output !== null) return { kind: 'recorded' };
  if (repair === 'retry' && markerOf(workflow) !== undefined) return { kind: 'rollback' };
  if (workflow.status === 'SUCCESS' && (isResult || resume)) return { kind: 'status' };
  if (workflow.status === 'ERROR' && resume && !isResult) return { kind: 'status' };
  const by = isResult ? recordedAfter(workflow, seq, found.recordVersion) : undefined;
  return by === undefined ? undefined : { kind: 'overtaken', by: String(by) };
}

/** The lowest number of something that was recorded after a step's error. */
function recordedAfter({ results, intents }: Workflow, seq: number, version: number): number | undefined {
  const later = [...results.values(), ...intents.values()].filter(
    (entry) => entry.recordVersion > version && ('output' in entry || entry.seq !== seq),
  );
  return later.length === 0 ? undefined : Math.min(...later.map((entry) => entry.seq));
}

function record(db: MemoryDatabase, workflow: Workflow, { auditId }: Act, options: RepairOptions): void {
  const { seq, repair, output, error } = options;
  const failed = workflow.results.get(seq);
  const intent = workflow.intents.get(seq);
  workflow.results.delete(seq);
  if (repair === 'not-happened' || repair === 'retry') {
    workflow.intents.delete(seq);
    return;
  }
  const now = db.now();
  workflow.results.set(seq, {
    seq,
    name: failed?.name ?? intent?.name ?? '',
    kind: 'step',
    output,
    error,
    attempts: repair === 'skip' ? 0 : Math.max(failed?.attempts ?? 1, intent?.attempts ?? 1, 1),
    attemptErrors: failed?.attemptErrors ?? null,
    childId: null,
    recordVersion: workflow.recordVersion + 1,
    epoch: workflow.epoch,
    nonce: auditId,
    startedAt: failed?.startedAt ?? intent?.recordedAt ?? now,
    completedAt: now,
  });
}

function runAgain(db: MemoryDatabase, workflow: Workflow, act: Act, detail: AuditRow['detail']): WorkflowStatus {
  const { workflowId, status } = workflow;
  resumeTree(db, [workflowId], { act, from: [status], detail });
  return 'ENQUEUED';
}

/** The workflow stays as it is, but for an execution whose executor is dead. */
function stay(
  db: MemoryDatabase,
  workflow: Workflow,
  act: Act & Pick<AuditRow, 'statusBefore' | 'detail'>,
): WorkflowStatus {
  const { status } = workflow;
  const statusAfter = status === 'PENDING' ? 'ENQUEUED' : status;
  raiseVersion(db, workflow);
  workflow.status = statusAfter;
  workflow.ownerToken = null;
  if (workflow.attention === 'OUTCOME_UNKNOWN') {
    const unknown = unknownOutcomes(workflow);
    const isBlocked = status === 'BLOCKED';
    if (unknown === null && !isBlocked) workflow.attention = null;
    workflow.attentionDetail = unknown ?? (isBlocked ? 'What became of its steps is recorded: resume it.' : null);
  }
  recordControl(db, workflow.workflowId, { ...act, statusAfter }, { wakes: statusAfter === 'ENQUEUED' });
  return statusAfter;
}
