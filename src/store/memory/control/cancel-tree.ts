import { end } from '../complete.js';
import { compareBytes } from '../byte-order.js';
import type { MemoryDatabase } from '../memory-database.js';
import { raiseVersion } from '../record-result.js';
import { isTerminal } from '../tables.js';
import { unknownOutcomes } from '../unknown.js';
import { recordControl, type Act } from './audit.js';

/** The workflow and the verb that something cascades from. */
export interface Cascade {
  readonly root: string;
  readonly by: string;
}

export interface CancelTreeOptions {
  readonly act: Act;
  /** The encoded error that the workflows end with. */
  readonly error: string;
  readonly children: 'cancel' | 'keep';
  /** Undefined: the workflows were asked for themselves, and only what lies below them is a cascade. */
  readonly cascade?: Cascade;
}

/** Cancels those of these that are not terminal and, level by level, their children; see cancel_tree. */
export function cancelTree(db: MemoryDatabase, workflowIds: readonly string[], options: CancelTreeOptions): void {
  let { cascade } = options;
  let level = liveOf(db, workflowIds);
  for (let first = level[0]; first !== undefined; first = level[0]) {
    for (const workflowId of level) cancelOne(db, workflowId, options, cascade);
    if (options.children === 'keep') return;
    cascade ??= { root: first, by: 'cancel' };
    level = liveOf(db, childrenToCancel(db, level));
  }
}

/** Those that are to end with one of these parents. */
export function childrenToCancel(db: MemoryDatabase, parentIds: readonly string[]): string[] {
  return [...db.workflows.values()]
    .filter(({ parent }) => parent?.close === 'cancel' && parentIds.includes(parent.workflowId))
    .map(({ workflowId }) => workflowId);
}

function liveOf(db: MemoryDatabase, workflowIds: readonly string[]): string[] {
  return [...new Set(workflowIds)]
    .filter((workflowId) => {
      const workflow = db.workflows.get(workflowId);
      return workflow !== undefined && !isTerminal(workflow.status);
    })
    .sort(compareBytes);
}

function cancelOne(
  db: MemoryDatabase,
  workflowId: string,
  { act, error }: CancelTreeOptions,
  cascade: Cascade | undefined,
): void {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined || isTerminal(workflow.status)) return;
  const { status: statusBefore, attention } = workflow;
  raiseVersion(db, workflow);
  workflow.ownerToken = null;
  workflow.wakeAt = null;
  // The effect of a step of which nobody knows what became of it may be there.
  workflow.attentionDetail = unknownOutcomes(workflow);
  workflow.attention = workflow.attentionDetail === null ? null : 'OUTCOME_UNKNOWN';
  db.waits.delete(workflowId);
  end(db, workflow, { status: 'CANCELLED', output: null, error, nonce: act.auditId });
  const detail = { cascadedFrom: cascade?.root, cascadedBy: cascade?.by, attention };
  recordControl(
    db,
    workflowId,
    { ...act, verb: 'cancel', statusBefore, statusAfter: 'CANCELLED', detail },
    { wakes: false },
  );
}
