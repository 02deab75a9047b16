import { setTimeout as pause } from 'node:timers/promises';
import type { OwnServer } from '../support/own-server.js';

/** What the database says in the end, read by nobody's code but PostgreSQL's. Values are as they are stored. */
export interface Record {
  readonly inputs: ReadonlyMap<string, string>;
  readonly statuses: ReadonlyMap<string, string>;
  /** By workflow and step. */
  readonly results: ReadonlyMap<string, string>;
  readonly events: ReadonlyMap<string, string>;
  /** Accepted messages by workflow, in their order. */
  readonly messages: ReadonlyMap<string, readonly string[]>;
  readonly outcomes: ReadonlyMap<string, string>;
  /** Runs of transactions whose effect is there, by workflow. */
  readonly effects: ReadonlyMap<string, readonly string[]>;
}

interface Row {
  readonly id: string;
  readonly value: string;
  readonly name?: string;
}

export async function readRecord(server: OwnServer): Promise<Record> {
  const read = (statement: string): Promise<Row[]> => server.query<Row>(statement);
  return {
    inputs: mapOf(await read('SELECT workflow_id AS id, input AS value FROM holdfast.workflow_input')),
    statuses: mapOf(await read('SELECT workflow_id AS id, status AS value FROM holdfast.workflow_status')),
    results: mapOf(await read('SELECT workflow_id AS id, name, output AS value FROM holdfast.step_result')),
    events: mapOf(
      await read('SELECT workflow_id AS id, key AS name, value FROM holdfast.event ORDER BY record_version'),
    ),
    messages: listsOf(
      await read('SELECT workflow_id AS id, payload AS value FROM holdfast.message ORDER BY workflow_id, position'),
    ),
    outcomes: mapOf(await read('SELECT workflow_id AS id, output AS value FROM holdfast.workflow_outcome')),
    effects: listsOf(await read('SELECT workflow_id AS id, run AS value FROM effect')),
  };
}

export function keyOf(workflowId: string, name: string): string {
  return `${workflowId}, ${name}`;
}

/** Returns also when time is up: the judges see what is left. */
export async function untilAllEnded(server: OwnServer, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    const [row] = await server.query<{ open: boolean }>(
      'SELECT EXISTS (SELECT FROM holdfast.workflow_status WHERE completed_at IS NULL) AS open',
    );
    if (row?.open === false) return;
    await pause(200);
  }
}

function mapOf(rows: readonly Row[]): Map<string, string> {
  return new Map(rows.map(({ id, name, value }) => [name === undefined ? id : keyOf(id, name), value]));
}

function listsOf(rows: readonly Row[]): Map<string, string[]> {
  const lists = new Map<string, string[]>();
  for (const { id, value } of rows) lists.set(id, [...(lists.get(id) ?? []), value]);
  return lists;
}
