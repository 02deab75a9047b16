import pg from 'pg';
import type { Entry } from './ledger/entry.js';
import type { Case } from './judge-apart.js';

/** What the database has in the end: rows as they are, numbers as numbers. */
export interface ChaosRecord {
  readonly statuses: readonly {
    readonly workflow_id: string;
    readonly name: string;
    readonly status: string;
    readonly epoch: number;
    readonly version: number;
  }[];
  readonly inputs: readonly { readonly workflow_id: string; readonly input: string }[];
  readonly outcomes: readonly {
    readonly workflow_id: string;
    readonly status: string;
    readonly output: string | null;
    readonly error: string | null;
    readonly epoch: number;
    /** Milliseconds since 1970. */
    readonly at: number;
  }[];
  readonly steps: readonly {
    readonly workflow_id: string;
    readonly seq: number;
    readonly name: string;
    readonly kind: string;
    readonly output: string | null;
    readonly epoch: number;
    readonly version: number;
    readonly at: number;
  }[];
  readonly sleeps: readonly {
    readonly workflow_id: string;
    readonly seq: number;
    readonly wake_at: number;
    readonly at: number;
  }[];
  readonly ended: readonly { readonly workflow_id: string; readonly epoch: number; readonly how: string }[];
  readonly changes: readonly Change[];
  readonly written: readonly Written[];
  readonly payments: readonly {
    readonly workflow_id: string;
    readonly step: string;
    readonly epoch: number;
    readonly run: string;
  }[];
  readonly cents: number;
  readonly events: readonly { readonly workflow_id: string; readonly key: string; readonly value: string }[];
  readonly messages: readonly {
    readonly workflow_id: string;
    readonly payload: string;
    readonly consumed: number | null;
  }[];
  readonly undelivered: number;
}

/** A change of a workflow's row, as the audit noted it. */
export interface Change {
  readonly n: number;
  readonly workflow_id: string;
  readonly verb: 'INSERT' | 'UPDATE' | 'DELETE';
  readonly version_before: number | null;
  readonly version: number | null;
  readonly epoch_before: number | null;
  readonly epoch: number | null;
  readonly token_before: string | null;
  readonly token: string | null;
  readonly status: string | null;
  readonly executor_id: string;
  readonly app: string;
  readonly at: number;
}

/** A row of a result or an outcome that was inserted, changed or deleted. */
export interface Written {
  readonly n: number;
  readonly workflow_id: string;
  readonly relation: 'step_result' | 'workflow_outcome';
  readonly verb: 'INSERT' | 'UPDATE' | 'DELETE';
  readonly seq: number | null;
  readonly epoch: number;
  readonly app: string;
}

/** Everything that the judges get to see. */
export interface Evidence extends Omit<Case, 'database' | 'ledger' | 'keep'> {
  readonly entries: readonly Entry[];
  readonly record: ChaosRecord;
  /** What a fresh process is told of each workflow that succeeded, as JSON. */
  readonly fresh: ReadonlyMap<string, string>;
}

const MS = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::float8`;

const QUERIES: Readonly<Record<Exclude<keyof ChaosRecord, 'cents' | 'undelivered'>, string>> = {
  statuses: `SELECT workflow_id, name, status, epoch::int, record_version::int AS version FROM holdfast.workflow_status`,
  inputs: `SELECT workflow_id, input FROM holdfast.workflow_input`,
  outcomes: `SELECT workflow_id, status, output, error, epoch::int, ${MS('recorded_at')} AS at FROM holdfast.workflow_outcome`,
  steps: `SELECT workflow_id, seq, name, kind, output, epoch::int, record_version::int AS version, ${MS('completed_at')} AS at
            FROM holdfast.step_result`,
  sleeps: `SELECT workflow_id, seq, ${MS('wake_at')} AS wake_at, ${MS('recorded_at')} AS at
             FROM holdfast.step_intent WHERE kind = 'sleep'`,
  ended: `SELECT workflow_id, epoch::int, ended_how AS how FROM holdfast.ended_ownership`,
  changes: `SELECT n::int, workflow_id, verb, version_before::int, version::int, epoch_before::int, epoch::int,
                   token_before, token, status, executor_id, app, ${MS('at')} AS at FROM chaos.change ORDER BY n`,
  written: `SELECT n::int, workflow_id, relation, verb, seq, epoch::int, app FROM chaos.written ORDER BY n`,
  payments: `SELECT workflow_id, step, epoch, run FROM chaos.payment`,
  events: `SELECT workflow_id, key, value FROM holdfast.event`,
  messages: `SELECT workflow_id, payload, consumed_seq AS consumed FROM holdfast.message`,
};

export async function readRecord(database: string): Promise<ChaosRecord> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    const tables: [string, unknown][] = [];
    for (const [name, query] of Object.entries(QUERIES)) tables.push([name, (await client.query(query)).rows]);
    const { rows } = await client.query<Pick<ChaosRecord, 'cents' | 'undelivered'>>(
      `SELECT (SELECT sum(cents)::int FROM chaos.account) AS cents,
              (SELECT count(*)::int FROM holdfast.outbox_event) AS undelivered`,
    );
    return { ...(Object.fromEntries(tables) as unknown as ChaosRecord), ...rows[0] };
  } finally {
    await client.end();
  }
}
