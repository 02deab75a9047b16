import type { AttentionQuery, AttentionRow, EventQuery, EventRow, RecordPage } from '../../admin-store.js';
import type { CursorForm } from '../../record-cursor.js';
import { compareBytes } from '../byte-order.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { OutboxRow, Workflow } from '../tables.js';
import { bytesOf, pageOf, toDate } from './page.js';

const EVENTS: CursorForm = { list: 'outbox', parts: ['text'] };
const ATTENTION: CursorForm = { list: 'attention', parts: ['number', 'text'] };
/** The code of events that are not delivered any more. */
const UNDELIVERABLE = 'UNDELIVERABLE';

/** See list_events. */
export function listEvents(db: MemoryDatabase, query: EventQuery): RecordPage<EventRow> {
  const { isDead, topic, payload } = query;
  const rows = db.outbox
    .filter((row) => (isDead ?? row.state === 'dead') === (row.state === 'dead') && (topic ?? row.topic) === row.topic)
    .map((row, place) => ({ row, place }));
  return pageOf(rows, query, {
    form: EVENTS,
    partsOf: ({ row }) => [row.eventId],
    isAfter: ({ place }, [after = '']) => place > rows.findIndex(({ row }) => row.eventId === after),
    itemOf: ({ row }) => toEvent(row, payload),
    bytesOf: ({ row }) => (payload ? bytesOf(row.payload, row.error) : 0),
  });
}

/** See list_attention. */
export function listAttention(db: MemoryDatabase, query: AttentionQuery): RecordPage<AttentionRow> {
  const workflows = [...db.workflows.values()].flatMap((workflow) => toEntry(workflow) ?? []);
  const events = db.outbox.filter(({ state }) => state === 'dead').map(toDeadEntry);
  const entries = [...workflows, ...events]
    .filter(({ item }) => query.codes === null || query.codes.includes(item.code))
    .sort((one, other) => one.beganUs - other.beganUs || compareBytes(one.id, other.id));
  return pageOf(entries, query, {
    form: ATTENTION,
    partsOf: ({ beganUs, id }) => [String(beganUs), id],
    isAfter: ({ beganUs, id }, [afterUs = '', afterId = '']) =>
      (beganUs - Number(afterUs) || compareBytes(id, afterId)) > 0,
    itemOf: ({ item }) => item,
  });
}

interface Entry {
  readonly beganUs: number;
  readonly id: string;
  readonly item: AttentionRow;
}

function toEntry(workflow: Workflow): Entry | undefined {
  const { workflowId, name, status, attention: code, attentionDetail: detail, attempts, updatedAt } = workflow;
  if (code === null) return undefined;
  return {
    beganUs: Math.round(workflow.createdAt * 1_000),
    id: `workflow ${workflowId}`,
    item: { kind: 'workflow', code, detail, since: new Date(updatedAt), attempts, workflowId, name, status },
  };
}

function toDeadEntry({ eventId, topic, key, workflowId, attempts, reason, addedAt, diedAt }: OutboxRow): Entry {
  const since = new Date(diedAt ?? addedAt);
  return {
    beganUs: Math.round(addedAt * 1_000),
    id: `event ${eventId}`,
    item: { kind: 'event', code: UNDELIVERABLE, detail: reason, since, attempts, eventId, topic, key, workflowId },
  };
}

function toEvent(row: OutboxRow, withPayload: boolean): EventRow {
  const { eventId, topic, key, state, workflowId, attempts, reason, payload, error } = row;
  return {
    eventId,
    topic,
    key,
    state: state === 'dead' ? 'dead' : state === 'ready' ? 'due' : 'waiting',
    workflowId,
    attempts,
    dueAt: state === 'ready' ? new Date(row.dueAt) : null,
    reason,
    addedAt: new Date(row.addedAt),
    diedAt: toDate(row.diedAt),
    payload: withPayload ? { payload, error } : null,
  };
}
