import type { CancelOptions, ControlAnswer, SkipCompensationOptions } from '../../admin-store.js';
import { compareBytes } from '../byte-order.js';
import type { MemoryDatabase } from '../memory-database.js';
import { raiseVersion } from '../record-result.js';
import { addMarker, compensationsOf, markerOf } from '../rollback.js';
import { endOwnership } from '../start.js';
import { isTerminal, type Workflow } from '../tables.js';
import { recordControl, type Act } from './audit.js';
import { cancelTree, childrenToCancel } from './cancel-tree.js';
import { recordedSteps } from './rewind.js';

/** Cancels a workflow and has it rolled back first; see cancel_with_compensation. */
export function cancelWithCompensation(
  db: MemoryDatabase,
  target: Workflow,
  act: Act,
  options: Pick<CancelOptions, 'error' | 'children'>,
): ControlAnswer {
  const { workflowId: root, status: statusBefore } = target;
  if (isTerminal(statusBefore) || markerOf(target) !== undefined) return { kind: 'unchanged', status: statusBefore };
  let level = [target];
  for (let isFirst = true; level.length > 0; isFirst = false) {
    const cascade = isFirst ? undefined : { root, by: 'cancel' };
    const fresh = level.filter((workflow) => workflow.epoch === 0 && recordedSteps(workflow) === 0);
    const tree = {
      ...(cascade === undefined ? {} : { cascade }),
      act,
      error: options.error,
      children: 'keep' as const,
    };
    cancelTree(
      db,
      fresh.map(({ workflowId }) => workflowId),
      tree,
    );
    const rolledBack = level.filter((workflow) => !isTerminal(workflow.status) && markerOf(workflow) === undefined);
    for (const workflow of rolledBack) rollBack(db, workflow, { act, error: options.error, cascade });
    if (options.children === 'keep') break;
    level = liveOf(
      db,
      childrenToCancel(
        db,
        rolledBack.map(({ workflowId }) => workflowId),
      ),
    );
  }
  return { kind: 'done', statusBefore, statusAfter: target.status };
}

/** Records a planned compensation as dealt with by hand; see skip_compensation. */
export function skipCompensation(
  db: MemoryDatabase,
  workflow: Workflow,
  act: Act,
  { seq, output }: SkipCompensationOptions,
): ControlAnswer {
  const { workflowId, status } = workflow;
  if (['PENDING', 'SUSPENDED', 'SUCCESS', 'ERROR'].includes(status)) {
    return { kind: 'refused', refusal: { kind: 'status' }, status };
  }
  const planned = compensationsOf(workflow).find((row) => row.seq === seq);
  if (planned === undefined || workflow.results.has(seq)) {
    return { kind: 'refused', refusal: { kind: 'compensation' }, status };
  }
  raiseVersion(db, workflow);
  const now = db.now();
  const { name } = planned;
  const rest = { error: null, attempts: 0, attemptErrors: null, childId: null, startedAt: now, completedAt: now };
  const { recordVersion } = workflow;
  const nonce = act.auditId;
  workflow.results.set(seq, { ...rest, seq, name, kind: 'compensation', output, recordVersion, epoch: 0, nonce });
  const audit = { ...act, statusBefore: status, statusAfter: status, detail: { seq, name } };
  recordControl(db, workflowId, audit, { wakes: false });
  return { kind: 'done', statusBefore: status, statusAfter: status };
}

function rollBack(
  db: MemoryDatabase,
  workflow: Workflow,
  {
    act,
    error,
    cascade,
  }: {
    readonly act: Act;
    readonly error: string;
    readonly cascade: { readonly root: string; readonly by: string } | undefined;
  },
): void {
  const { workflowId, status: statusBefore, attention } = workflow;
  endOwnership(workflow, db.now(), 'cancel', act.auditId);
  raiseVersion(db, workflow);
  workflow.ownerToken = null;
  db.waits.delete(workflowId);
  addMarker(db, workflow, { seq: recordedSteps(workflow), cause: 'cancelled', error, epoch: 0, nonce: act.auditId });
  const detail = { compensate: true, cascadedFrom: cascade?.root, cascadedBy: cascade?.by, attention };
  const audit = { ...act, verb: 'cancel', statusBefore, statusAfter: 'ENQUEUED' as const, detail };
  recordControl(db, workflowId, audit, { wakes: true });
}

function liveOf(db: MemoryDatabase, workflowIds: readonly string[]): Workflow[] {
  return [...new Set(workflowIds)]
    .sort(compareBytes)
    .map((workflowId) => db.workflows.get(workflowId))
    .filter((workflow) => workflow !== undefined)
    .filter(({ status }) => !isTerminal(status));
}
