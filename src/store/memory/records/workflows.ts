import type { RecordPage, WorkflowQuery, WorkflowRecord } from '../../admin-store.js';
import type { CursorForm } from '../../record-cursor.js';
import { compareBytes } from '../byte-order.js';
import type { MemoryDatabase } from '../memory-database.js';
import type { Workflow } from '../tables.js';
import { bytesOf, pageOf, toDate } from './page.js';

const NEWEST_FIRST: CursorForm = { list: 'workflows-desc', parts: ['number', 'text'] };
const OLDEST_FIRST: CursorForm = { list: 'workflows-asc', parts: ['number', 'text'] };

/** See find_workflows. */
export function listWorkflows(db: MemoryDatabase, query: WorkflowQuery): RecordPage<WorkflowRecord> {
  const isNewestFirst = query.order === 'newest-first';
  const direction = isNewestFirst ? -1 : 1;
  const compare = (one: Place, other: Place): number =>
    direction * (microseconds(one) - microseconds(other) || compareBytes(one.workflowId, other.workflowId));
  const rows = [...db.workflows.values()].filter((workflow) => fits(query, workflow)).sort(compare);
  return pageOf(rows, query, {
    form: isNewestFirst ? NEWEST_FIRST : OLDEST_FIRST,
    partsOf: (row) => [String(microseconds(row)), row.workflowId],
    isAfter: (row, [createdUs = '', workflowId = '']) =>
      compare(row, { createdAt: Number(createdUs) / 1_000, workflowId }) > 0,
    itemOf: (row) => toRecord(row, query.payload),
    bytesOf: ({ input, outcome }) => (query.payload ? bytesOf(input.text, outcome?.output, outcome?.error) : 0),
  });
}

/** See get_workflow. */
export function getWorkflow(db: MemoryDatabase, workflowId: string, payload: boolean): WorkflowRecord | null {
  const workflow = db.workflows.get(workflowId);
  return workflow === undefined ? null : toRecord(workflow, payload);
}

type Place = Pick<Workflow, 'createdAt' | 'workflowId'>;

function microseconds({ createdAt }: Place): number {
  return Math.round(createdAt * 1_000);
}

function fits(query: WorkflowQuery, workflow: Workflow): boolean {
  const { createdFrom, createdBefore, attention } = query;
  return (
    isAny(query.statuses, workflow.status) &&
    isAny(query.names, workflow.name) &&
    workflow.workflowId.startsWith(query.idPrefix ?? '') &&
    is(query.executorId, workflow.executorId) &&
    is(query.parentId, workflow.parent?.workflowId ?? null) &&
    is(query.appVersion, workflow.appVersion) &&
    is(query.queue, workflow.queue) &&
    is(query.key, workflow.partitionKey) &&
    (attention === null || (workflow.attention !== null) === attention) &&
    (createdFrom === null || workflow.createdAt >= createdFrom.getTime()) &&
    (createdBefore === null || workflow.createdAt < createdBefore.getTime())
  );
}

function is(wanted: string | null, found: string | null): boolean {
  return wanted === null || wanted === found;
}

function isAny<Value>(wanted: readonly Value[] | null, found: Value): boolean {
  return wanted === null || wanted.includes(found);
}

function toRecord(row: Workflow, withPayload: boolean): WorkflowRecord {
  const { parent, schedule } = row;
  return {
    workflowId: row.workflowId,
    name: row.name,
    instance: row.instance,
    status: row.status,
    epoch: row.epoch,
    recordVersion: row.recordVersion,
    executorId: row.executorId,
    attempts: row.attempts,
    maxAttempts: row.maxAttempts,
    appVersion: row.appVersion,
    firstStep: row.firstSeq,
    wakeAt: toDate(row.wakeAt),
    timeoutMs: row.timeoutMs,
    deadline: toDate(row.deadline),
    parent: parent === null ? null : { workflowId: parent.workflowId, seq: parent.seq, onParentCancel: parent.close },
    forkedFrom: row.forkedFrom,
    attributes: row.attributes,
    queue: toQueue(row),
    schedule:
      schedule === null
        ? null
        : { name: schedule.name, scheduledAt: new Date(schedule.scheduledAt), cause: schedule.cause },
    attention: row.attention === null ? null : { code: row.attention, detail: row.attentionDetail },
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    startedAt: toDate(row.startedAt),
    completedAt: toDate(row.completedAt),
    payload: withPayload
      ? { input: row.input.text, output: row.outcome?.output ?? null, error: row.outcome?.error ?? null }
      : null,
  };
}

function toQueue({ queue, priority, partitionKey, deduplicationId }: Workflow): WorkflowRecord['queue'] {
  if (queue === null) return null;
  return { name: queue, priority, key: partitionKey === '' ? null : partitionKey, deduplicationId };
}
