import { createHash } from 'node:crypto';
import type { EventToAdd } from '../event-to-add.js';
import type { AddAnswer, ClaimedEvent, OutsideEvent, SettleAnswer, Settlement, TopicLimit } from '../outbox-store.js';
import { isLaneKey, isName, refusal } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import type { OutboxRow, Workflow } from './tables.js';

/** Adds an event from outside of workflows; see add_events. */
export function addEvent(db: MemoryDatabase, event: OutsideEvent): AddAnswer {
  const constraint = invalidEvent(event);
  if (constraint !== undefined) return refusal(constraint);
  if (findEvent(db, event.eventId) === undefined) db.outbox.push(newEvent(db, event, null));
  return { kind: 'added' };
}

/** A call of a workflow adds events, with its result; see put_events. */
export function putEvents(db: MemoryDatabase, workflow: Workflow, seq: number, events: readonly EventToAdd[]): void {
  const { workflowId, input } = workflow;
  const rows = events.map((event, place) =>
    newEvent(db, { ...event, eventId: eventIdOf(input.nonce, seq, place) }, { workflowId, seq }),
  );
  db.outbox.push(...rows);
}

/** The constraint that it violates, if it does. */
export function invalidEvent({ topic, key }: EventToAdd): string | undefined {
  if (!isName(topic)) return 'event_topic_length';
  return isLaneKey(key) ? undefined : 'event_key_length';
}

/** A relay takes events that are due; see claim_events. */
export function claimEvents(db: MemoryDatabase, topics: readonly TopicLimit[], leaseMs: number): ClaimedEvent[] {
  const fresh = db.outbox.filter(({ state, topic }) => state === 'new' && topics.some((one) => one.topic === topic));
  for (const { topic, key } of fresh) advanceLane(db, topic, key);
  return topics.flatMap(({ topic, limit }) =>
    db.outbox
      .filter((row) => row.topic === topic && row.state === 'ready' && row.dueAt <= db.now())
      .sort((one, other) => one.dueAt - other.dueAt)
      .slice(0, limit)
      .map((row) => claimEvent(db, row, leaseMs)),
  );
}

/** A relay says what came of an event that it has claimed; see settle_events. */
export function settleEvent(db: MemoryDatabase, { eventId, token, outcome }: Settlement): SettleAnswer {
  const row = findEvent(db, eventId);
  if (row?.token !== token) return { kind: 'lost' };
  if (outcome.kind === 'delivered') {
    dropEvents(db, (other) => other === row);
    return { kind: 'settled' };
  }
  const now = db.now();
  const isDead = outcome.kind === 'dead';
  row.state = isDead ? 'dead' : 'ready';
  row.dueAt = outcome.kind === 'retry' ? now + outcome.delayMs : now;
  if (outcome.kind === 'released') row.attempts -= 1;
  else row.error = outcome.error ?? row.error;
  row.diedAt = isDead ? now : null;
  row.reason = isDead ? outcome.reason : null;
  row.token = null;
  return { kind: 'settled' };
}

/** Takes back what calls of a workflow from a number on have added and what is not delivered yet; see retract_events. */
export function retractEvents(db: MemoryDatabase, workflowId: string, fromSeq: number): void {
  dropEvents(db, (row) => row.workflowId === workflowId && row.seq !== null && row.seq >= fromSeq);
}

/** Removes events, and lets the next ones of their lanes be delivered. */
export function dropEvents(db: MemoryDatabase, isDropped: (row: OutboxRow) => boolean): void {
  const dropped = db.outbox.filter(isDropped);
  db.outbox = db.outbox.filter((row) => !dropped.includes(row));
  for (const { topic, key } of dropped) advanceLane(db, topic, key);
}

export function findEvent(db: MemoryDatabase, eventId: string): OutboxRow | undefined {
  return db.outbox.find((row) => row.eventId === eventId);
}

/** Gives new events of a lane their place, and lets the first one be delivered if nothing is before it; see advance_lane. */
function advanceLane(db: MemoryDatabase, topic: string, key: string | null): void {
  if (key === null) return;
  const lane = db.outbox.filter((row) => row.topic === topic && row.key === key);
  for (const row of lane) if (row.state === 'new') row.state = 'behind';
  if (lane.some(({ state }) => state === 'ready' || state === 'dead')) return;
  const [head] = lane;
  if (head === undefined) return;
  head.state = 'ready';
  head.dueAt = db.now();
}

function claimEvent(db: MemoryDatabase, row: OutboxRow, leaseMs: number): ClaimedEvent {
  const token = db.newToken();
  row.token = token;
  row.attempts += 1;
  row.dueAt = db.now() + leaseMs;
  const { eventId, topic, key, payload, attempts, workflowId, addedAt } = row;
  return { eventId, topic, key, payload, token, attempts, workflowId, addedAt: new Date(addedAt) };
}

function newEvent(
  db: MemoryDatabase,
  { eventId, topic, key, payload }: OutsideEvent,
  by: { readonly workflowId: string; readonly seq: number } | null,
): OutboxRow {
  const now = db.now();
  return {
    eventId,
    topic,
    key,
    payload,
    state: key === null ? 'ready' : 'new',
    workflowId: by?.workflowId ?? null,
    seq: by?.seq ?? null,
    attempts: 0,
    dueAt: now,
    token: null,
    reason: null,
    error: null,
    addedAt: now,
    diedAt: null,
  };
}

/** See outbox_event_id. */
function eventIdOf(nonce: string, seq: number, place: number): string {
  const bytes = createHash('sha256')
    .update(`outbox ${nonce} ${String(seq)} ${String(place)}`)
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x0f) | 0x80 | ((bytes.readUInt8(8) & 3) << 4), 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
