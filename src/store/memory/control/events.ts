import type { EventVerbRequest } from '../../admin-store.js';
import type { MemoryDatabase } from '../memory-database.js';
import { dropEvents, findEvent } from '../outbox.js';
import type { OutboxRow } from '../tables.js';
import { addAudit } from './audit.js';
import { findAct } from './verbs.js';

/** Has a dead event delivered again; see redeliver_event. */
export function redeliverEvent(db: MemoryDatabase, request: EventVerbRequest): 'done' | 'unchanged' | 'missing' {
  const row = findEvent(db, request.eventId);
  if (findAct(db, request.eventId, request.nonce) !== undefined) return 'done';
  if (row === undefined) return 'missing';
  if (row.state !== 'dead') return 'unchanged';
  record(db, request, 'outbox.redeliver', row);
  row.state = 'ready';
  row.attempts = 0;
  row.dueAt = db.now();
  row.diedAt = null;
  row.reason = null;
  return 'done';
}

/** Gives an event up; see discard_event. */
export function discardEvent(db: MemoryDatabase, request: EventVerbRequest): 'done' | 'missing' {
  const row = findEvent(db, request.eventId);
  // First of all: a rewind may have had the event added again since.
  if (findAct(db, request.eventId, request.nonce) !== undefined) return 'done';
  if (row === undefined) return 'missing';
  dropEvents(db, (other) => other === row);
  record(db, request, 'outbox.discard', row);
  return 'done';
}

function record(
  db: MemoryDatabase,
  { eventId, nonce, by }: EventVerbRequest,
  verb: string,
  { topic, key, workflowId, attempts }: OutboxRow,
): void {
  const detail = { topic, key, workflowId, attempts };
  addAudit(db, eventId, { auditId: nonce, verb, ...by, statusBefore: null, statusAfter: null, detail });
  db.notify({ topic: 'outbox' });
}
