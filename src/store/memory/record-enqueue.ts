import type { EnqueueAnswer } from '../queue-store.js';
import type { EnqueueRecord, EnqueueRecordAnswer } from '../store.js';
import { enqueue } from './enqueue.js';
import type { MemoryDatabase } from './memory-database.js';
import { owned, refused, unwritten, usedTwice, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { addIntent, ownIntent } from './record-intent.js';

/** Enqueues a workflow for a workflow; see record_enqueue. */
export function recordEnqueue(
  db: MemoryDatabase,
  check: OwnershipCheck,
  { seq, name, child }: EnqueueRecord,
): Tried<EnqueueRecordAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const earlier = ownIntent(db, check, seq);
    if (earlier === undefined) return refused(db, check, seq);
    return written({ kind: 'written', childId: earlier.childId ?? child.workflowId });
  }
  if (workflow.intents.has(seq)) return usedTwice(seq);
  const parent = { workflowId: workflow.workflowId, seq, close: child.onParentCancel };
  const answer = enqueue(db, child, { nonce: check.nonce, parent });
  const childId = recordedChild(answer, child);
  if (typeof childId !== 'string') return unwritten(childId);
  addIntent(db, workflow, check.nonce, { seq, name, kind: 'enqueue', childId, wakeAt: null });
  if (answer.kind === 'enqueued' && child.delayMs === 0) db.notify({ topic: 'work' });
  return written({ kind: 'written', childId });
}

/** The workflow that is recorded, possibly another one than asked for; or why none is. */
function recordedChild(answer: EnqueueAnswer, child: EnqueueRecord['child']): string | EnqueueRecordAnswer {
  switch (answer.kind) {
    case 'enqueued':
      return child.workflowId;
    case 'debounced':
      return answer.workflowId;
    case 'exists':
      return answer.name === child.name ? child.workflowId : { kind: 'child-name-taken', name: answer.name };
    case 'deduplicated':
      return child.deduplication?.onConflict === 'attach' ? answer.holder : answer;
    case 'no-queue':
    case 'refused':
      return answer;
  }
}
