import type { MemoryDatabase } from '../../src/store/memory/memory-database.js';
import type { Workflow } from '../../src/store/memory/tables.js';
import type { Ledger } from './ledger.js';
import type { Counts } from './violations.js';

/** What a workflow has done is undone when it fails, and stays when it does not. */
export function judgeRollbacks(
  db: MemoryDatabase,
  ledger: Ledger,
  counts: Counts,
  violate: (text: string) => void,
): void {
  for (const workflow of db.workflows.values()) {
    if (workflow.outcome?.error?.includes('"WorkflowTimeoutError"') === true) counts.timeouts += 1;
    const marker = [...workflow.results.values()].find(({ kind }) => kind === 'rollback');
    if (marker === undefined) {
      const isLeft = workflow.status === 'ERROR' && doneBy(workflow, Infinity).length > 0;
      if (isLeft) violate(`${workflow.workflowId} has failed, and what it has done is left`);
      continue;
    }
    counts.rollbacks += 1;
    // A plain cancellation ends it where it is. The end of a rollback is no act.
    if (db.audit.get(workflow.workflowId)?.at(-1)?.statusAfter === 'CANCELLED') continue;
    judgeRollback(workflow, marker.recordVersion, ledger, violate);
  }
}

function judgeRollback(workflow: Workflow, begunAt: number, ledger: Ledger, violate: (text: string) => void): void {
  const { workflowId, intents, results, status } = workflow;
  if (status !== 'ERROR' && status !== 'CANCELLED') violate(`${workflowId} was rolled back, and is ${status}`);
  const undone: number[] = [];
  for (const intent of [...intents.values()].sort((one, other) => one.seq - other.seq)) {
    if (!('undoes' in intent) || intent.undoes === null) continue;
    const result = results.get(intent.seq);
    if (result === undefined) violate(`compensation ${String(intent.seq)} of ${workflowId} has not run`);
    undone.push(intent.undoes);
  }
  const known = undone.map((seq) => knownAt(workflow, seq));
  if (known.some((version, index) => version > (known[index - 1] ?? Infinity))) {
    violate(
      `${workflowId} was undone in the order ${JSON.stringify(undone)}, and knew of them at ${JSON.stringify(known)}`,
    );
  }
  for (const { seq, output } of doneBy(workflow, begunAt)) {
    const id = /body \d+\./.exec(output ?? '')?.[0] ?? '';
    if (!undone.includes(seq)) violate(`step ${String(seq)} of ${workflowId} is not to be undone`);
    else if (!ledger.isUndone(workflowId, id)) violate(`step ${String(seq)} of ${workflowId} was not undone`);
  }
}

/** Since which version the end of a step is on record; infinite: it is not. */
function knownAt({ results }: Workflow, seq: number): number {
  return results.get(seq)?.recordVersion ?? Infinity;
}

/** Undoable steps that are on record from before that version. */
function doneBy({ results }: Workflow, version: number): { readonly seq: number; readonly output: string | null }[] {
  return [...results.values()].filter(
    ({ kind, name, output, recordVersion }) =>
      kind === 'step' && name === 'undoable' && output !== null && recordVersion < version,
  );
}
