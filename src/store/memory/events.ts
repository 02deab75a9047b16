import type { EventAddress, EventRecord, FoundEvent, WriteAnswer } from '../store.js';
import { UPDATE_PREFIX } from '../update-prefix.js';
import { isName } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import { owned, unacceptable, usedTwice, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { addResult, refusedResult } from './record-result.js';
import { isTerminal, type Workflow } from './tables.js';
import { wakeWaiters } from './wake-ups.js';

/** A workflow sets an event; see record_event. */
export function recordEvent(db: MemoryDatabase, check: OwnershipCheck, record: EventRecord): Tried<WriteAnswer> {
  const { seq, key, value } = record;
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedResult(db, check, seq) ?? written({ kind: 'written' });
  if (!isName(key)) return unacceptable('event_key_length');
  if (workflow.results.has(seq)) return usedTwice(seq);
  addResult(db, workflow, check.nonce, { ...record, name: key, kind: 'event' });
  workflow.events.push({ key, value, seq, recordVersion: workflow.recordVersion });
  wakeWaiters(db, workflow.workflowId);
  return written({ kind: 'written' });
}

/** The current value of an event; undefined where one has to wait. See read_events. */
export function readEvent(db: MemoryDatabase, { workflowId, key }: EventAddress): FoundEvent | undefined {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return { kind: 'missing' };
  const value = valueOf(workflow, key);
  if (value !== undefined) return { kind: 'set', value };
  if (isTerminal(workflow.status)) return { kind: 'ended', status: workflow.status };
  return isLeftBehind(workflow, key) ? { kind: 'ended', status: 'CONTINUED' } : undefined;
}

/** Whether the run that received this request of an update has continued as new; see is_left_behind. */
export function isLeftBehind({ messages, firstSeq }: Workflow, key: string): boolean {
  return key.startsWith(UPDATE_PREFIX) && (messages.get(key)?.consumedSeq ?? firstSeq) < firstSeq;
}

export function valueOf(workflow: Workflow, key: string): string | undefined {
  return workflow.events.findLast((event) => event.key === key)?.value;
}
