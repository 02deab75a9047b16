import type { ChildAnswer, ChildStart, IntentAnswer, IntentRecord } from '../store.js';
import { isWorkflowId } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import {
  owned,
  refused,
  unacceptable,
  unwritten,
  usedTwice,
  written,
  type OwnershipCheck,
  type Tried,
} from './ownership-check.js';
import { raiseVersion } from './record-result.js';
import { runningWorkflow } from './start.js';
import type { IntentRow, Workflow } from './tables.js';

/** Records what a step has to make durable before it can wait, and starts its child; see record_intent. */
export function recordIntent(db: MemoryDatabase, check: OwnershipCheck, intent: IntentRecord): Tried<IntentAnswer> {
  const { seq, child } = intent;
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const earlier = ownIntent(db, check, seq);
    return earlier === undefined ? refused(db, check, seq) : written(answer(db, earlier, child));
  }
  if (workflow.intents.has(seq)) return usedTwice(seq);
  if (child !== undefined) {
    if (!isWorkflowId(child.workflowId)) return unacceptable('workflow_id_length');
    const known = db.workflows.get(child.workflowId);
    if (known !== undefined && known.name !== child.name) {
      return unwritten({ kind: 'child-name-taken', name: known.name });
    }
    if (known === undefined) db.workflows.set(child.workflowId, childOf(db, workflow, seq, child, check.nonce));
  }
  const row = addIntent(db, workflow, check.nonce, {
    seq,
    name: intent.name,
    kind: intent.kind,
    childId: child?.workflowId ?? null,
    wakeAt: wakeAt(db, intent.sleep),
  });
  return written(answer(db, row, child));
}

/** The intent that an earlier try has recorded, whose reply was lost. */
export function ownIntent(db: MemoryDatabase, check: OwnershipCheck, seq: number): IntentRow | undefined {
  const found = db.workflows.get(check.workflowId)?.intents.get(seq);
  return found?.nonce === check.nonce ? found : undefined;
}

/** Raises the record version, under which the intent is recorded. */
export function addIntent(
  db: MemoryDatabase,
  workflow: Workflow,
  nonce: string,
  intent: Pick<IntentRow, 'seq' | 'name' | 'kind' | 'childId' | 'wakeAt'> & Partial<Pick<IntentRow, 'attempts'>>,
): IntentRow {
  raiseVersion(db, workflow);
  const { epoch, recordVersion } = workflow;
  const row = { attempts: 0, ...intent, recordVersion, epoch, nonce, recordedAt: db.now() };
  workflow.intents.set(row.seq, row);
  return row;
}

function answer(db: MemoryDatabase, row: IntentRow, child: ChildStart | undefined): IntentAnswer {
  const remainingMs = row.wakeAt === null ? null : row.wakeAt - db.now();
  return { kind: 'written', remainingMs, child: child === undefined ? null : childAnswer(db, child) };
}

function childAnswer(db: MemoryDatabase, { workflowId, token }: ChildStart): ChildAnswer {
  return db.workflows.get(workflowId)?.ownerToken === token ? 'created' : 'attached';
}

function wakeAt(db: MemoryDatabase, sleep: IntentRecord['sleep']): number | null {
  if (sleep === undefined) return null;
  return 'ms' in sleep ? db.now() + sleep.ms : Math.max(0, sleep.untilMs);
}

function childOf(db: MemoryDatabase, parent: Workflow, seq: number, child: ChildStart, nonce: string): Workflow {
  const { workflowId, executorId, incarnation, appVersion } = parent;
  if (executorId === null || incarnation === null) throw new TypeError('A running workflow names its executor.');
  return runningWorkflow(db, child, {
    executorId,
    incarnation,
    appVersion,
    token: child.token,
    nonce,
    parent: { workflowId, seq, close: child.onParentCancel },
  });
}
