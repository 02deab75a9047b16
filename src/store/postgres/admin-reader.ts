import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import type {
  AttentionQuery,
  AttentionRow,
  AuditRow,
  EventQuery,
  EventRow,
  OverviewRow,
  OwnershipRow,
  PageQuery,
  RecordPage,
  RollbackRow,
  StepRow,
  UnservedVersionRow,
  WorkflowQuery,
  WorkflowRecord,
} from '../admin-store.js';
import { askAgain } from './ask-again.js';
import { type CursorForm, decodeCursor, encodeCursor } from '../record-cursor.js';
import {
  ATTENTION_COLUMNS,
  type AttentionSqlRow,
  AUDIT_COLUMNS,
  type AuditSqlRow,
  EVENT_COLUMNS,
  type EventSqlRow,
  OWNERSHIP_COLUMNS,
  type OwnershipSqlRow,
  ROLLBACK_COLUMNS,
  type RollbackSqlRow,
  STEP_COLUMNS,
  type StepSqlRow,
  toAttentionRow,
  toAuditRow,
  toEventRow,
  toOwnershipRow,
  toRollbackRow,
  toStepRow,
  toWorkflowRecord,
  WORKFLOW_COLUMNS,
  UNSERVED_COLUMNS,
  type UnservedSqlRow,
  type WorkflowSqlRow,
} from './admin-rows.js';

/** Payload that one page carries, in bytes: a page ends before the item that would pass it, but has at least one item. */
export const MAX_PAGE_PAYLOAD_BYTES = 32 * 2 ** 20;
/** How long a question is asked again before it is given up, in milliseconds. */
const RETRY_FOR_MS = 30_000;

const NEWEST_FIRST: CursorForm = { list: 'workflows-newest', parts: ['number', 'text'] };
const OLDEST_FIRST: CursorForm = { list: 'workflows-oldest', parts: ['number', 'text'] };
const STEPS: CursorForm = { list: 'steps', parts: ['number'] };
const OWNERSHIP: CursorForm = { list: 'ownership', parts: ['number'] };
const AUDIT: CursorForm = { list: 'audit', parts: ['number', 'uuid'] };
const EVENTS: CursorForm = { list: 'outbox', parts: ['number'] };
const ATTENTION: CursorForm = { list: 'attention', parts: ['number', 'text'] };

interface PageRow extends SqlRow {
  /** Whether the list goes on after this row. */
  readonly has_more: boolean;
}

/** Reads the record, page by page. */
export class RecordReader {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #closing: AbortSignal;

  constructor(driver: Driver, schema: string, closing: AbortSignal) {
    this.#driver = driver;
    this.#schema = schema;
    this.#closing = closing;
  }

  async workflows(query: WorkflowQuery): Promise<RecordPage<WorkflowRecord>> {
    const form = query.order === 'newest-first' ? NEWEST_FIRST : OLDEST_FIRST;
    const [createdUs = null, workflowId = null] = decodeCursor(form, query.cursor) ?? [];
    const rows = await this.#ask<WorkflowSqlRow>('find_workflows', WORKFLOW_COLUMNS, [
      ['text[]', query.statuses],
      ['text[]', query.names],
      ['text', query.idPrefix],
      ['text', query.executorId],
      ['text', query.parentId],
      ['text', query.appVersion],
      ['text', query.queue],
      ['text', query.key],
      ['bool', query.attention],
      ['timestamptz', query.createdFrom?.toISOString() ?? null],
      ['timestamptz', query.createdBefore?.toISOString() ?? null],
      ['bool', query.order === 'newest-first'],
      ['int8', createdUs],
      ['text', workflowId],
      ['int4', query.limit],
      ['bool', query.payload],
      ['int8', MAX_PAGE_PAYLOAD_BYTES],
    ]);
    return {
      items: rows.map((row) => toWorkflowRecord(row, query.payload)),
      nextCursor: nextCursor(form, rows, (row) => [row.created_us, row.workflow_id]),
    };
  }

  async unservedVersions(limit: number): Promise<readonly UnservedVersionRow[]> {
    const rows = await this.#ask<UnservedSqlRow>('unserved_versions', UNSERVED_COLUMNS, [['int4', limit]]);
    return rows.map(({ app_version: appVersion, workflows, since }) => ({
      appVersion,
      workflows,
      since: new Date(since),
    }));
  }

  overview(limit: number): Promise<readonly OverviewRow[]> {
    return this.#ask<OverviewRow & SqlRow>('fleet_overview', 'l.kind, l.name, l.amount', [['int4', limit]]);
  }

  async workflow(workflowId: string, payload: boolean): Promise<WorkflowRecord | null> {
    const [row] = await this.#ask<WorkflowSqlRow>('get_workflow', WORKFLOW_COLUMNS, [
      ['text', workflowId],
      ['bool', payload],
    ]);
    return row === undefined ? null : toWorkflowRecord(row, payload);
  }

  async steps(
    workflowId: string,
    query: PageQuery & { readonly payload: boolean },
  ): Promise<RecordPage<StepRow> | null> {
    const [after = null] = decodeCursor(STEPS, query.cursor) ?? [];
    const rows = await this.#ask<StepSqlRow>('list_steps', STEP_COLUMNS, [
      ['text', workflowId],
      ['int8', after],
      ['int4', query.limit],
      ['bool', query.payload],
      ['int8', MAX_PAGE_PAYLOAD_BYTES],
    ]);
    return this.#unlessMissing(workflowId, {
      items: rows.map((row) => toStepRow(row, query.payload)),
      nextCursor: nextCursor(STEPS, rows, (row) => [String(row.seq)]),
    });
  }

  async rollback(workflowId: string): Promise<RollbackRow | null> {
    const rows = await this.#ask<RollbackSqlRow>('list_rollback', ROLLBACK_COLUMNS, [['text', workflowId]]);
    return toRollbackRow(rows);
  }

  async ownership(workflowId: string, query: PageQuery): Promise<RecordPage<OwnershipRow> | null> {
    const [before = null] = decodeCursor(OWNERSHIP, query.cursor) ?? [];
    const rows = await this.#ask<OwnershipSqlRow>('list_ownership', OWNERSHIP_COLUMNS, [
      ['text', workflowId],
      ['int8', before],
      ['int4', query.limit],
    ]);
    return this.#unlessMissing(workflowId, {
      items: rows.map(toOwnershipRow),
      nextCursor: nextCursor(OWNERSHIP, rows, (row) => [String(row.epoch)]),
    });
  }

  async audit(workflowId: string, query: PageQuery): Promise<RecordPage<AuditRow>> {
    const [beforeUs = null, beforeId = null] = decodeCursor(AUDIT, query.cursor) ?? [];
    const rows = await this.#ask<AuditSqlRow>('list_audit', AUDIT_COLUMNS, [
      ['text', workflowId],
      ['int8', beforeUs],
      ['uuid', beforeId],
      ['int4', query.limit],
    ]);
    return {
      items: rows.map(toAuditRow),
      nextCursor: nextCursor(AUDIT, rows, (row) => [row.acted_us, row.audit_id]),
    };
  }

  async events({ isDead, topic, payload, limit, cursor }: EventQuery): Promise<RecordPage<EventRow>> {
    const [after = null] = decodeCursor(EVENTS, cursor) ?? [];
    const rows = await this.#ask<EventSqlRow>('list_events', EVENT_COLUMNS, [
      ['bool', isDead],
      ['text', topic],
      ['int8', after],
      ['int4', limit],
      ['bool', payload],
      ['int8', MAX_PAGE_PAYLOAD_BYTES],
    ]);
    return {
      items: rows.map(toEventRow),
      nextCursor: nextCursor(EVENTS, rows, (row) => [row.event_position]),
    };
  }

  async attention({ codes, limit, cursor }: AttentionQuery): Promise<RecordPage<AttentionRow>> {
    const [afterUs = null, afterId = null] = decodeCursor(ATTENTION, cursor) ?? [];
    const rows = await this.#ask<AttentionSqlRow>('list_attention', ATTENTION_COLUMNS, [
      ['text[]', codes],
      ['int8', afterUs],
      ['text', afterId],
      ['int4', limit],
    ]);
    return {
      items: rows.map(toAttentionRow),
      nextCursor: nextCursor(ATTENTION, rows, (row) => [row.entry_us, row.entry_id]),
    };
  }

  /** An empty page is either the end of a workflow's list or no workflow at all. */
  async #unlessMissing<Item>(workflowId: string, page: RecordPage<Item>): Promise<RecordPage<Item> | null> {
    if (page.items.length > 0) return page;
    return (await this.workflow(workflowId, false)) === null ? null : page;
  }

  #ask<Row extends SqlRow>(
    functionName: string,
    columns: string,
    parameters: readonly (readonly [type: string, value: SqlParameter])[],
  ): Promise<readonly Row[]> {
    const placeholders = parameters.map(([type], index) => `$${String(index + 1)}::${type}`).join(', ');
    const text = `SELECT ${columns} FROM "${this.#schema}".${functionName}(${placeholders}) l`;
    const values = parameters.map(([, value]) => value);
    const prepare = `holdfast_${functionName}`;
    return askAgain<Row>(this.#driver, this.#closing, text, values, { prepare, forMs: RETRY_FOR_MS });
  }
}

function nextCursor<Row extends PageRow>(
  form: CursorForm,
  rows: readonly Row[],
  partsOf: (row: Row) => readonly string[],
): string | null {
  const last = rows.at(-1);
  return last?.has_more === true ? encodeCursor(form, partsOf(last)) : null;
}
