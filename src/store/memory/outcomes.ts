import type { FoundOutcome } from '../store.js';
import type { MemoryDatabase } from './memory-database.js';

/** What became of a workflow; undefined: nothing yet. See read_outcomes. */
export function readOutcome(db: MemoryDatabase, workflowId: string): FoundOutcome | undefined {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return { kind: 'missing', workflowId };
  if (workflow.outcome === null) return undefined;
  const { status, output, error } = workflow.outcome;
  return { kind: 'outcome', workflowId, status, output, error };
}
