import type { WorkflowStatus } from '../../api/workflow-handle.js';
import type { SqlRow } from '../../drivers/driver.js';
import type { DeathReason } from '../outbox-store.js';
import type {
  AttentionRow,
  AuditRow,
  EventRow,
  OwnershipRow,
  RollbackRow,
  StepRow,
  WorkflowRecord,
} from '../admin-store.js';

/** Milliseconds since 1970, as a float8: what both drivers return alike. */
const ms = (expression: string): string => `(extract(epoch FROM ${expression}) * 1000)::float8`;

/** Selects a {@link WorkflowSqlRow} from what find_workflows or get_workflow returns as `l`. */
export const WORKFLOW_COLUMNS = `
  (l.workflow).workflow_id, (l.workflow).name, (l.workflow).instance, (l.workflow).status,
  (l.workflow).epoch::float8 AS epoch, (l.workflow).record_version::float8 AS record_version,
  (l.workflow).executor_id, (l.workflow).attempts, (l.workflow).max_attempts, (l.workflow).app_version,
  (l.workflow).first_seq,
  ${ms('(l.workflow).wake_at')} AS wake_at, (l.workflow).timeout_ms::float8 AS timeout_ms,
  ${ms('(l.workflow).deadline')} AS deadline, (l.workflow).parent_id, (l.workflow).parent_seq,
  (l.workflow).parent_close, (l.workflow).forked_from, (l.workflow).attributes::text AS attributes,
  (l.workflow).queue, (l.workflow).priority, nullif((l.workflow).partition_key, '') AS partition_key,
  (l.workflow).deduplication_id, (l.workflow).schedule, ${ms('(l.workflow).scheduled_at')} AS scheduled_at,
  (l.workflow).schedule_cause, (l.workflow).attention, (l.workflow).attention_detail, ${ms('(l.workflow).created_at')} AS created_at,
  ${ms('(l.workflow).updated_at')} AS updated_at, ${ms('(l.workflow).started_at')} AS started_at,
  ${ms('(l.workflow).completed_at')} AS completed_at, l.created_us::text AS created_us, l.input, l.output, l.error,
  l.has_more`;

export interface WorkflowSqlRow extends SqlRow {
  readonly workflow_id: string;
  readonly name: string;
  readonly instance: string | null;
  readonly status: WorkflowStatus;
  readonly epoch: number;
  readonly record_version: number;
  readonly executor_id: string | null;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly app_version: string;
  readonly first_seq: number;
  readonly wake_at: number | null;
  readonly timeout_ms: number | null;
  readonly deadline: number | null;
  readonly parent_id: string | null;
  readonly parent_seq: number | null;
  readonly parent_close: 'cancel' | 'abandon' | null;
  readonly forked_from: string | null;
  readonly attributes: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly partition_key: string | null;
  readonly deduplication_id: string | null;
  readonly schedule: string | null;
  readonly scheduled_at: number | null;
  readonly schedule_cause: 'tick' | 'trigger' | 'backfill' | 'fork' | null;
  readonly attention: string | null;
  readonly attention_detail: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  /** Microseconds since 1970: the whole precision, for the cursor. */
  readonly created_us: string;
  readonly input: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly has_more: boolean;
}

export function toWorkflowRecord(row: WorkflowSqlRow, withPayload: boolean): WorkflowRecord {
  const { parent_id: parentId, parent_seq: parentSeq, parent_close: parentClose } = row;
  return {
    workflowId: row.workflow_id,
    name: row.name,
    instance: row.instance,
    status: row.status,
    epoch: row.epoch,
    recordVersion: row.record_version,
    executorId: row.executor_id,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    appVersion: row.app_version,
    firstStep: row.first_seq,
    wakeAt: toDate(row.wake_at),
    timeoutMs: row.timeout_ms,
    deadline: toDate(row.deadline),
    parent:
      parentId === null || parentSeq === null || parentClose === null
        ? null
        : { workflowId: parentId, seq: parentSeq, onParentCancel: parentClose },
    forkedFrom: row.forked_from,
    attributes: row.attributes,
    queue:
      row.queue === null
        ? null
        : {
            name: row.queue,
            priority: row.priority,
            key: row.partition_key,
            deduplicationId: row.deduplication_id,
          },
    schedule:
      row.schedule === null || row.scheduled_at === null || row.schedule_cause === null
        ? null
        : { name: row.schedule, scheduledAt: new Date(row.scheduled_at), cause: row.schedule_cause },
    attention: row.attention === null ? null : { code: row.attention, detail: row.attention_detail },
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
    startedAt: toDate(row.started_at),
    completedAt: toDate(row.completed_at),
    payload: withPayload ? { input: row.input, output: row.output, error: row.error } : null,
  };
}

export const STEP_COLUMNS = `
  l.seq, l.name, l.kind, l.complete, l.output, l.error, l.attempts, l.attempt_errors, l.child_id,
  ${ms('l.wake_at')} AS wake_at, l.record_version::float8 AS record_version, l.epoch::float8 AS epoch,
  ${ms('l.started_at')} AS started_at, ${ms('l.completed_at')} AS completed_at, l.has_more`;

export interface StepSqlRow extends SqlRow {
  readonly seq: number;
  readonly name: string;
  readonly kind: string;
  readonly complete: boolean;
  readonly output: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly attempt_errors: string | null;
  readonly child_id: string | null;
  readonly wake_at: number | null;
  readonly record_version: number;
  readonly epoch: number;
  readonly started_at: number;
  readonly completed_at: number | null;
  readonly has_more: boolean;
}

export function toStepRow(row: StepSqlRow, withPayload: boolean): StepRow {
  return {
    seq: row.seq,
    name: row.name,
    kind: row.kind,
    complete: row.complete,
    attempts: row.attempts,
    childId: row.child_id,
    wakeAt: toDate(row.wake_at),
    recordVersion: row.record_version,
    epoch: row.epoch,
    startedAt: new Date(row.started_at),
    completedAt: toDate(row.completed_at),
    payload: withPayload ? { output: row.output, error: row.error, attemptErrors: row.attempt_errors } : null,
  };
}

export const OWNERSHIP_COLUMNS = `
  l.epoch::float8 AS epoch, l.executor_id, l.incarnation::float8 AS incarnation, l.reason,
  ${ms('l.owned_at')} AS owned_at, ${ms('l.ended_at')} AS ended_at, l.ended_how, l.has_more`;

export interface OwnershipSqlRow extends SqlRow {
  readonly epoch: number;
  readonly executor_id: string;
  readonly incarnation: number;
  readonly reason: string;
  readonly owned_at: number;
  readonly ended_at: number | null;
  readonly ended_how: string | null;
  readonly has_more: boolean;
}

export function toOwnershipRow(row: OwnershipSqlRow): OwnershipRow {
  return {
    epoch: row.epoch,
    executorId: row.executor_id,
    incarnation: row.incarnation,
    reason: row.reason,
    ownedAt: new Date(row.owned_at),
    endedAt: toDate(row.ended_at),
    endedHow: row.ended_how,
  };
}

export const ROLLBACK_COLUMNS = `
  l.seq, l.name, l.undoes, l.state, l.attempts, l.failure, ${ms('l.began_at')} AS began_at,
  ${ms('l.completed_at')} AS completed_at`;

/** The marker, or a compensation. */
export interface RollbackSqlRow extends SqlRow {
  readonly seq: number;
  readonly name: string;
  readonly undoes: number | null;
  /** Null: the marker. */
  readonly state: RollbackRow['compensations'][number]['state'] | null;
  readonly attempts: number | null;
  readonly failure: string | null;
  readonly began_at: number;
  readonly completed_at: number | null;
}

export function toRollbackRow(rows: readonly RollbackSqlRow[]): RollbackRow | null {
  const marker = rows.find(({ state }) => state === null);
  if (marker === undefined) return null;
  return {
    cause: marker.name as RollbackRow['cause'],
    seq: marker.seq,
    beganAt: new Date(marker.began_at),
    error: marker.failure ?? '',
    compensations: rows.flatMap(({ seq, name, undoes, state, attempts, failure, completed_at: completedAt }) =>
      state === null
        ? []
        : [{ seq, name, undoes, state, attempts: attempts ?? 0, completedAt: toDate(completedAt), failure }],
    ),
  };
}

export const UNSERVED_COLUMNS = `l.app_version, l.workflows, ${ms('l.since')} AS since`;

export interface UnservedSqlRow extends SqlRow {
  readonly app_version: string;
  readonly workflows: number;
  readonly since: number;
}

export const AUDIT_COLUMNS = `
  l.audit_id::text AS audit_id, l.verb, l.actor, l.reason, l.status_before, l.status_after, l.detail::text AS detail,
  ${ms('l.acted_at')} AS acted_at, l.acted_us::text AS acted_us, l.has_more`;

export interface AuditSqlRow extends SqlRow {
  readonly audit_id: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
  readonly status_before: WorkflowStatus | null;
  readonly status_after: WorkflowStatus | null;
  readonly detail: string | null;
  readonly acted_at: number;
  readonly acted_us: string;
  readonly has_more: boolean;
}

export function toAuditRow(row: AuditSqlRow): AuditRow {
  return {
    auditId: row.audit_id,
    verb: row.verb,
    actor: row.actor,
    reason: row.reason,
    statusBefore: row.status_before,
    statusAfter: row.status_after,
    detail: row.detail,
    actedAt: new Date(row.acted_at),
  };
}

export const EVENT_COLUMNS = `
  l.event_id::text AS event_id, l.topic, l.event_key, l.state, l.workflow_id, l.attempts, ${ms('l.due_at')} AS due_at, l.reason,
  ${ms('l.added_at')} AS added_at, ${ms('l.died_at')} AS died_at, l.payload, l.error, l.event_position::text AS event_position, l.has_more`;

export interface EventSqlRow extends SqlRow {
  readonly event_id: string;
  readonly topic: string;
  readonly event_key: string | null;
  readonly state: 'new' | 'behind' | 'ready' | 'dead';
  readonly workflow_id: string | null;
  readonly attempts: number;
  readonly due_at: number;
  readonly reason: DeathReason | null;
  readonly added_at: number;
  readonly died_at: number | null;
  readonly payload: string | null;
  readonly error: string | null;
  readonly event_position: string;
  readonly has_more: boolean;
}

export function toEventRow(row: EventSqlRow): EventRow {
  return {
    eventId: row.event_id,
    topic: row.topic,
    key: row.event_key,
    state: row.state === 'dead' ? 'dead' : row.state === 'ready' ? 'due' : 'waiting',
    workflowId: row.workflow_id,
    attempts: row.attempts,
    dueAt: row.state === 'ready' ? new Date(row.due_at) : null,
    reason: row.reason,
    addedAt: new Date(row.added_at),
    diedAt: toDate(row.died_at),
    payload: row.payload === null ? null : { payload: row.payload, error: row.error },
  };
}

export const ATTENTION_COLUMNS = `
  l.code, l.detail, ${ms('l.found_at')} AS found_at, l.workflow_id, l.name, l.status, l.event_id::text AS event_id, l.topic,
  l.event_key, l.attempts, l.entry_us::text AS entry_us, l.entry_id, l.has_more`;

/** Either of a workflow or of an event. */
export interface AttentionSqlRow extends SqlRow {
  readonly code: string;
  readonly detail: string | null;
  readonly found_at: number;
  readonly workflow_id: string | null;
  readonly name: string | null;
  readonly status: WorkflowStatus | null;
  readonly event_id: string | null;
  readonly topic: string | null;
  readonly event_key: string | null;
  readonly attempts: number;
  readonly entry_us: string;
  readonly entry_id: string;
  readonly has_more: boolean;
}

export function toAttentionRow(row: AttentionSqlRow): AttentionRow {
  const { code, detail, attempts, workflow_id: workflowId, name, status, event_id: eventId, topic } = row;
  const common = { code, detail, attempts, since: new Date(row.found_at) };
  if (eventId !== null && topic !== null) {
    return { kind: 'event', ...common, eventId, topic, key: row.event_key, workflowId };
  }
  if (workflowId === null || name === null || status === null) {
    throw new TypeError('list_attention returned neither a workflow nor an event.');
  }
  return { kind: 'workflow', ...common, workflowId, name, status };
}

function toDate(milliseconds: number | null): Date | null {
  return milliseconds === null ? null : new Date(milliseconds);
}
