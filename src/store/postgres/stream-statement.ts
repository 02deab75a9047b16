import type { SqlParameter } from '../../drivers/driver.js';
import type { PendingStreamWrite } from './pending-write.js';
import type { WorkflowGroup } from './write-batch.js';

const TYPES = [
  'text[]', 'uuid[]', 'int8[]', 'int4[]', 'uuid[]', 'int4[]', 'text[]', 'text[]', 'text[]', 'text[]', 'int4[]', 'int4[]',
  'int4[]',
]; // prettier-ignore

/** The text of a call of stream_batch. */
export function streamText(schema: string): string {
  const placeholders = TYPES.map((type, index) => `$${String(index + 1)}::${type}`).join(', ');
  return [
    'SELECT item, answer, found_status, found_epoch::float8 AS found_epoch, found_version::float8 AS found_version, found_detail',
    `  FROM "${schema}".stream_batch(${placeholders})`,
  ].join('\n');
}

/** Its parameters, for the entries of many executions; those of one in their order. */
export function streamColumns(groups: readonly WorkflowGroup[]): SqlParameter[] {
  const rows = groups.flatMap(({ writes }) =>
    (writes as readonly PendingStreamWrite[]).map((pending, index) => ({
      pending,
      entries: index === 0 ? writes.length : 0,
    })),
  );
  const column = (pick: (pending: PendingStreamWrite) => string | number | null): SqlParameter =>
    rows.map(({ pending }) => pick(pending));
  return [
    column(({ workflowId }) => workflowId),
    column(({ ownership }) => ownership.token),
    column(({ ownership }) => ownership.recordVersion),
    rows.map(({ entries }) => entries),
    column(({ nonce }) => nonce),
    column(({ write }) => write.seq),
    column(({ write: { by } }) => (by.kind === 'attempt' ? null : by.kind)),
    column(({ write }) => write.stream),
    column(({ write }) => write.value),
    column(({ write: { by } }) => (by.kind === 'attempt' ? null : by.output)),
    column(({ write: { by } }) => (by.kind === 'attempt' ? by.attempt : 1)),
    column(({ write: { by } }) => (by.kind === 'attempt' ? by.oncePlace : null)),
    column(({ write: { by } }) => (by.kind === 'attempt' ? 0 : by.elapsedMs)),
  ];
}
