import type { UnknownRecord, WriteAnswer } from '../store.js';
import type { MemoryDatabase } from './memory-database.js';
import { owned, refused, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { addIntent, ownIntent } from './record-intent.js';
import { raiseVersion } from './record-result.js';
import type { Workflow } from './tables.js';

/** Steps that are named to people. */
const MOST_NAMED = 20;

/** Records that nobody knows what became of a step's body; see mark_unknown. */
export function markUnknown(
  db: MemoryDatabase,
  check: OwnershipCheck,
  { seq, name, attempts }: UnknownRecord,
): Tried<WriteAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) {
    return ownIntent(db, check, seq) === undefined ? refused(db, check, seq) : written({ kind: 'written' });
  }
  const known = workflow.intents.get(seq);
  if (known === undefined) {
    addIntent(db, workflow, check.nonce, { seq, name, kind: 'step', childId: null, wakeAt: null, attempts });
  } else {
    raiseVersion(db, workflow);
    workflow.intents.set(seq, { ...known, nonce: check.nonce, attempts: Math.max(known.attempts, attempts) });
  }
  return written({ kind: 'written' });
}

/** Text for people about the steps of which nobody knows what became of them; null: none. See unknown_outcomes. */
export function unknownOutcomes({ intents, results }: Workflow): string | null {
  const unknown = [...intents.values()]
    .filter(({ kind, seq }) => kind === 'step' && !results.has(seq))
    .sort((one, other) => one.seq - other.seq)
    .slice(0, MOST_NAMED);
  if (unknown.length === 0) return null;
  const named = unknown.map(({ name, seq }) => `step "${name}" (number ${String(seq)})`).join(', ');
  return `Nobody knows what became of: ${named}. Find out, and record it with admin.repairStep.`;
}
