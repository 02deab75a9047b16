import type { ControlAnswer, ControlRefusal, RewindOptions } from '../../admin-store.js';
import type { MemoryDatabase } from '../memory-database.js';
import { giveMessagesBack } from '../messages.js';
import { retractEvents } from '../outbox.js';
import { retractEntries } from '../streams.js';
import type { Workflow } from '../tables.js';
import { recordControl, type Act } from './audit.js';
import { cancelTree } from './cancel-tree.js';
import { beginAnew, resumeTree, unresolvedChildren } from './resume-tree.js';

/** Takes a workflow back to before a step; see rewind_workflow. */
export function rewind(
  db: MemoryDatabase,
  workflow: Workflow,
  act: Act,
  { toStep, childError }: RewindOptions,
): ControlAnswer {
  const { workflowId, status } = workflow;
  const refusal = refusedStep(workflow, toStep);
  if (refusal !== undefined) return { kind: 'refused', refusal, status };

  const removed = removeFrom(workflow, toStep);
  workflow.events = workflow.events.filter(({ seq }) => seq < toStep);
  giveMessagesBack(workflow, (seq) => seq >= toStep);
  retractEntries(workflow);
  retractEvents(db, workflowId, toStep);
  beginAnew(db, workflow);
  const detail = { toStep, removedSteps: removed };
  recordControl(db, workflowId, { ...act, statusBefore: status, statusAfter: 'ENQUEUED', detail }, { wakes: true });
  const cascade = { root: workflowId, by: 'rewind' };
  cancelTree(db, childrenFrom(db, workflowId, toStep), { act, error: childError, children: 'cancel', cascade });
  resumeTree(db, unresolvedChildren(db, workflow), { act, from: ['CANCELLED'], cascade });
  return { kind: 'done', statusBefore: status, statusAfter: 'ENQUEUED' };
}

/** Whether the record has no such step; see recorded_steps. */
export function refusedStep(workflow: Workflow, step: number, end?: number): ControlRefusal | undefined {
  const first = workflow.firstSeq;
  const last = end ?? recordedSteps(workflow);
  return step < first || step > last ? { kind: 'step', first, last } : undefined;
}

/** The number that a workflow's next step will have; see recorded_steps. */
export function recordedSteps({ firstSeq, results, intents }: Workflow): number {
  return Math.max(firstSeq, ...[...results.keys(), ...intents.keys()].map((seq) => seq + 1));
}

/** How many numbers it took away. */
function removeFrom({ results, intents }: Workflow, toStep: number): number {
  const removed = new Set([...results.keys(), ...intents.keys()].filter((seq) => seq >= toStep));
  for (const seq of removed) {
    results.delete(seq);
    intents.delete(seq);
  }
  return removed.size;
}

function childrenFrom(db: MemoryDatabase, parentId: string, fromStep: number): string[] {
  return [...db.workflows.values()]
    .filter(({ parent }) => parent?.workflowId === parentId && parent.seq >= fromStep && parent.close === 'cancel')
    .map(({ workflowId }) => workflowId);
}
