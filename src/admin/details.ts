import type { AuditRow, RollbackRow, StepRow, WorkflowRecord } from '../store/admin-store.js';
import type { StoredValue } from '../api/stored-value.js';
import type { AuditDetails, RollbackDetails, StepDetails, WorkflowDetails } from './admin-answers.js';

export interface ValueReader {
  /**
   * What a stored text stands for, be it a value or an error; a promise of it where a codec answers with one.
   * @throws or rejects when the text cannot be read.
   */
  readonly decode: (text: string) => unknown;
}

export async function workflowDetails(record: WorkflowRecord, reader: ValueReader): Promise<WorkflowDetails> {
  const { payload, attributes, ...rest } = record;
  const details = { ...rest, attributes: parseObject(attributes) };
  if (payload === null) return details;
  const { input, output, error } = payload;
  return {
    ...details,
    ...(input !== null && { input: await readStoredValue(input, reader) }),
    ...(output !== null && { output: await readStoredValue(output, reader) }),
    ...(error !== null && { error: await readStoredValue(error, reader) }),
  };
}

export async function stepDetails(row: StepRow, reader: ValueReader): Promise<StepDetails> {
  const { payload, ...details } = row;
  if (payload === null) return details;
  const { output, error, attemptErrors } = payload;
  return {
    ...details,
    ...(output !== null && { output: await readStoredValue(output, reader) }),
    ...(error !== null && { error: await readStoredValue(error, reader) }),
    ...(attemptErrors !== null && { attemptErrors: await readList(attemptErrors, reader) }),
  };
}

export async function rollbackDetails(
  row: RollbackRow,
  payload: boolean,
  reader: ValueReader,
): Promise<RollbackDetails> {
  const { error, compensations, ...rest } = row;
  const list = compensations.map(async ({ failure, ...details }) => ({
    ...details,
    ...(payload && failure !== null && { error: await readStoredValue(failure, reader) }),
  }));
  return {
    ...rest,
    ...(payload && { error: await readStoredValue(error, reader) }),
    compensations: await Promise.all(list),
  };
}

export function auditDetails(row: AuditRow): AuditDetails {
  return { ...row, detail: parseObject(row.detail) };
}

/** An unreadable value is shown as it is stored: it must not hide the list that it is part of. */
export async function readStoredValue(text: string, { decode }: ValueReader): Promise<StoredValue> {
  try {
    const decoded = decode(text);
    // Only a promise is awaited: a value may have a `then` of its own.
    return { readable: true, value: decoded instanceof Promise ? ((await decoded) as unknown) : decoded };
  } catch (error) {
    return { readable: false, text, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** The errors of several attempts are stored as one JSON array of what each would be alone. */
async function readList(text: string, reader: ValueReader): Promise<readonly StoredValue[]> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (!Array.isArray(parsed)) return [await readStoredValue(text, reader)];
  return Promise.all((parsed as unknown[]).map((entry) => readStoredValue(JSON.stringify(entry), reader)));
}

/** The column's type is `jsonb`, so the text is JSON. */
function parseObject(text: string | null): Readonly<Record<string, unknown>> | null {
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>);
}
