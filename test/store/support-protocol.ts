import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

import pg from 'pg';

import type { Driver } from '../../src/drivers/driver.js';
import type { DriverOptions } from '../../src/drivers/driver-options.js';
import { createPgDriver } from '../../src/drivers/pg-driver.js';
import { migrateSchema } from '../../src/store/postgres/migrate.js';
import { loadSqlFiles } from '../../src/store/postgres/sql-files.js';
import { defaultSchema } from '../support/conditions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

export type Row = Record<string, unknown>;
/** Runs one statement of a session; `@` before a name stands for the schema. */
export type Ask = <R extends Row = Row>(text: string, parameters?: readonly unknown[]) => Promise<R[]>;

/** The tables that the protocol writes for a workflow, each with what its rows are sorted by. */
export const WORKFLOW_TABLES = {
  workflow_status: 'workflow_id',
  workflow_input: 'workflow_id',
  workflow_outcome: 'workflow_id',
  step_result: 'workflow_id, seq',
  step_intent: 'workflow_id, seq',
  stream_entry: 'workflow_id, stream, entry_offset',
  ended_ownership: 'workflow_id, epoch',
  admin_audit: 'workflow_id, audit_id',
} as const;

/** One session of its own. */
export interface Session {
  readonly ask: Ask;
  readonly pid: number;
  end(): Promise<void>;
}

/** A database with one schema or several, and as many sessions as a test wants. */
export class ProtocolBench {
  readonly database: TestDatabase;
  readonly schema: string;
  readonly ask: Ask;
  readonly #clients = new Set<pg.Client>();
  readonly #drivers: Driver[] = [];

  private constructor(database: TestDatabase, schema: string, client: pg.Client) {
    this.database = database;
    this.schema = schema;
    this.#clients.add(client);
    this.ask = askOn(client, schema);
  }

  static async open(schema = defaultSchema()): Promise<ProtocolBench> {
    const database = await createTestDatabase();
    await migrate(database.url, schema);
    return new ProtocolBench(database, schema, await connect(database.url));
  }

  /** The same database with another schema, whose functions `mutate` has changed. */
  async mutant(schema: string, mutate: (functions: string) => string): Promise<ProtocolBench> {
    await migrate(this.database.url, schema, mutate);
    return new ProtocolBench(this.database, schema, await connect(this.database.url));
  }

  async session(): Promise<Session> {
    const client = await connect(this.database.url);
    this.#clients.add(client);
    const ask = askOn(client, this.schema);
    const [row] = await ask<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    return {
      ask,
      pid: row?.pid ?? 0,
      end: async () => {
        this.#clients.delete(client);
        await client.end();
      },
    };
  }

  async driver(options: DriverOptions & { readonly url?: string } = {}): Promise<Driver> {
    const driver = await createPgDriver({ connectionString: this.database.url, ...options, ...urlOf(options) });
    this.#drivers.push(driver);
    return driver;
  }

  /** Everything the schema holds, row versions included: what a refused write must leave as it was. */
  async wholeTables(): Promise<Record<string, unknown>> {
    const tables: Record<string, unknown> = {};
    for (const [table, order] of Object.entries(WORKFLOW_TABLES)) {
      tables[table] = await this.ask(
        `SELECT t.xmin::text AS row_version, to_jsonb(t) AS data FROM @${table} t ORDER BY ${order}`,
      );
    }
    return tables;
  }

  /** Waits until a session waits for a lock. */
  async untilBlocked(pid: number): Promise<void> {
    await until(`session ${pid} waits for a lock`, async () => (await this.#isBlocked(pid)) || undefined);
  }

  /** Waits until what a session was asked has settled, or the session waits for a lock. Returns whether that is it. */
  async untilSettledOrBlocked(pid: number, asked: Promise<unknown>): Promise<boolean> {
    const settled = asked.then(
      () => 'settled' as const,
      () => 'settled' as const,
    );
    const end = await until(`session ${pid} is through or waits`, async () => {
      const first = await Promise.race([settled, pause(0, 'under way' as const)]);
      if (first === 'settled') return first;
      return (await this.#isBlocked(pid)) ? 'blocked' : undefined;
    });
    return end === 'blocked';
  }

  async #isBlocked(pid: number): Promise<boolean> {
    const rows = await this.ask(`SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`, [pid]);
    return rows.length > 0;
  }

  /** Rows that break an invariant of the record, by what is wrong with them. */
  async violations(): Promise<string[]> {
    const rows = await this.ask<{ violation: string }>(VIOLATIONS);
    return rows.map(({ violation }) => violation);
  }

  async close(): Promise<void> {
    await Promise.all(this.#drivers.map((driver) => driver.close()));
    await Promise.all([...this.#clients].map((client) => client.end()));
    await this.database.drop();
  }

  /** Ends the sessions of a mutant, and leaves the database. */
  async leave(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.end()));
  }
}

/** Rows that break an invariant of the record. */
export const VIOLATIONS = `
  SELECT 'no outcome though terminal: ' || s.workflow_id AS violation FROM @workflow_status s
   WHERE s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
     AND NOT EXISTS (SELECT FROM @workflow_outcome o WHERE o.workflow_id = s.workflow_id AND o.status = s.status)
  UNION ALL
  SELECT 'outcome though not terminal: ' || o.workflow_id FROM @workflow_outcome o
   WHERE NOT EXISTS (SELECT FROM @workflow_status s WHERE s.workflow_id = o.workflow_id AND s.completed_at IS NOT NULL)
  UNION ALL
  SELECT 'token without PENDING, or the reverse: ' || s.workflow_id FROM @workflow_status s
   WHERE (s.owner_token IS NOT NULL) <> (s.status = 'PENDING')
  UNION ALL
  SELECT 'two entries of one version: ' || e.workflow_id || ' ' || e.record_version
    FROM (SELECT workflow_id, record_version FROM @step_result
          UNION ALL SELECT workflow_id, record_version FROM @step_intent) e
   GROUP BY e.workflow_id, e.record_version HAVING count(*) > 1
  UNION ALL
  SELECT 'an entry newer than its workflow: ' || e.workflow_id
    FROM (SELECT workflow_id, record_version FROM @step_result
          UNION ALL SELECT workflow_id, record_version FROM @step_intent) e
    JOIN @workflow_status s ON s.workflow_id = e.workflow_id WHERE e.record_version > s.record_version
  UNION ALL
  SELECT 'a gap in a stream: ' || e.workflow_id || ' ' || e.stream
    FROM @stream_entry e GROUP BY e.workflow_id, e.stream HAVING max(e.entry_offset) >= count(*)
  UNION ALL
  -- Epoch 0: by a control operation, which is no execution.
  SELECT 'written by an epoch after a later one had begun to write: ' || e.workflow_id || ' ' || e.seq
    FROM @step_result e JOIN @step_result later
      ON later.workflow_id = e.workflow_id AND later.epoch > e.epoch AND later.record_version < e.record_version AND e.epoch > 0
  UNION ALL
  SELECT 'ownership row missing or left over: ' || s.workflow_id
    FROM @workflow_status s LEFT JOIN @workflow_ownership o ON o.workflow_id = s.workflow_id
   GROUP BY s.workflow_id, s.epoch, s.status
  HAVING count(o.epoch) <> s.epoch OR max(o.epoch) IS DISTINCT FROM nullif(s.epoch, 0)
      OR count(*) FILTER (WHERE o.epoch IS NOT NULL AND o.ended_at IS NULL)
           <> CASE WHEN s.status = 'PENDING' THEN 1 ELSE 0 END`;

function urlOf(options: { readonly url?: string }): { connectionString?: string } {
  return options.url === undefined ? {} : { connectionString: options.url };
}

async function migrate(url: string, schema: string, mutate?: (functions: string) => string): Promise<void> {
  const driver = await createPgDriver({ connectionString: url, maxConnections: 1 });
  try {
    const files = await loadSqlFiles();
    const sql = mutate === undefined ? files.functions.sql : mutate(files.functions.sql);
    await migrateSchema(driver, { schema, files: { ...files, functions: { ...files.functions, sql } } });
  } finally {
    await driver.close();
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // Tests end sessions from outside.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

function askOn(client: pg.Client, schema: string): Ask {
  return async <R extends Row>(text: string, parameters: readonly unknown[] = []) => {
    const { rows } = await client.query(text.replaceAll('@', `"${schema}".`), [...parameters]);
    return rows as R[];
  };
}

/** Waits until `look` finds something; looks again every few milliseconds. */
export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`Not within 20 s: ${what}.`);
    await pause(3);
  }
}

// The calls of the protocol -------------------------------------------------------------------------------------------

/** What a write of an execution was answered with; `answer` is null when it is recorded. */
export interface Answer {
  readonly answer: string | null;
  readonly status: string | null;
  readonly epoch: number | null;
  readonly version: number | null;
  readonly detail: string | null;
  readonly remainingMs?: number | null;
  readonly child?: string | null;
}

/** Who writes, and which state it saw. */
export interface Owner {
  readonly id: string;
  readonly token: string;
  readonly version: number;
}

/** The same, and the nonce of its write; a random one by default. */
export interface Writer extends Owner {
  readonly nonce?: string;
}

export interface Step {
  readonly seq: number;
  readonly name?: string;
  readonly output?: string | null;
  readonly error?: string | null;
  readonly elapsedMs?: number;
  readonly nonce?: string;
}

interface AnswerRow extends Row {
  readonly item?: number | null;
  readonly answer: string | null;
  readonly found_status: string | null;
  readonly found_epoch: number | null;
  readonly found_version: number | null;
  readonly found_detail: string | null;
  readonly remaining_ms?: number | null;
  readonly child?: string | null;
}

const FOUND = `answer, found_status, found_epoch::float8 AS found_epoch, found_version::float8 AS found_version, found_detail`;
const RECORDED: Answer = { answer: null, status: null, epoch: null, version: null, detail: null };

function toAnswer(row: AnswerRow | undefined): Answer {
  if (row === undefined) return RECORDED;
  return {
    answer: row.answer,
    status: row.found_status,
    epoch: row.found_epoch,
    version: row.found_version,
    detail: row.found_detail,
    ...(row.remaining_ms === undefined ? {} : { remainingMs: row.remaining_ms }),
    ...(row.child === undefined ? {} : { child: row.child }),
  };
}

export interface StartCall {
  readonly id: string;
  readonly token?: string;
  readonly nonce?: string;
  readonly name?: string;
  readonly executor?: string;
  readonly incarnation?: number;
  readonly maxAttempts?: number;
  readonly appVersion?: string;
}

export async function start(ask: Ask, call: StartCall): Promise<Answer> {
  const [row] = await ask<AnswerRow>(
    `SELECT ${FOUND} FROM @start_batch($1::text, $2::int8, $3::text, ARRAY[$4::text], ARRAY[$5::uuid], ARRAY[$6::uuid],
       ARRAY[$7::text], ARRAY[NULL::text], ARRAY['"input"'::text], ARRAY[$8::int4], ARRAY[NULL::int8], ARRAY[NULL::text])`,
    [
      call.executor ?? 'owner',
      call.incarnation ?? 1,
      call.appVersion ?? 'v1',
      call.id,
      call.token ?? randomUUID(),
      call.nonce ?? randomUUID(),
      call.name ?? 'flow',
      call.maxAttempts ?? 100,
    ],
  );
  return toAnswer(row);
}

export async function checkpointOne(ask: Ask, who: Owner, step: Step): Promise<Answer> {
  const [row] = await ask<AnswerRow>(
    `SELECT item, ${FOUND} FROM @checkpoint_one($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, $6::text, 'step',
       $7::text, $8::text, 1, NULL, NULL, $9::int4)`,
    [
      who.id,
      who.token,
      who.version,
      step.nonce ?? randomUUID(),
      step.seq,
      step.name ?? 'work',
      (step.error ?? null) === null ? (step.output ?? '"done"') : null,
      step.error ?? null,
      step.elapsedMs ?? 0,
    ],
  );
  return toAnswer(row);
}

/** Several steps of one workflow in one call; answers by step. */
export async function checkpointBatch(ask: Ask, who: Owner, steps: readonly Step[]): Promise<Answer[]> {
  return checkpointGroups(ask, [{ who, steps }]);
}

/** Steps of several workflows in one call; answers in the order of the steps. */
export async function checkpointGroups(
  ask: Ask,
  groups: readonly { readonly who: Owner; readonly steps: readonly Step[] }[],
): Promise<Answer[]> {
  const items = groups.flatMap(({ who, steps }) =>
    steps.map((step, index) => ({ who, step, index, count: index === 0 ? steps.length : 0 })),
  );
  const rows = await ask<AnswerRow>(
    `SELECT item, ${FOUND} FROM @checkpoint_batch($1::text[], $2::uuid[], $3::int8[], $4::int4[], $5::uuid[], $6::int4[],
       $7::text[], $8::text[], $9::text[], $10::text[], $11::int4[], $12::text[], $13::text[], $14::int4[])`,
    [
      items.map(({ who }) => who.id),
      items.map(({ who }) => who.token),
      items.map(({ who, index }) => who.version + index),
      items.map(({ count }) => count),
      items.map(({ step }) => step.nonce ?? randomUUID()),
      items.map(({ step }) => step.seq),
      items.map(({ step }) => step.name ?? 'work'),
      items.map(() => 'step'),
      items.map(({ step }) => ((step.error ?? null) === null ? (step.output ?? '"done"') : null)),
      items.map(({ step }) => step.error ?? null),
      items.map(() => 1),
      items.map(() => null),
      items.map(() => null),
      items.map(({ step }) => step.elapsedMs ?? 0),
    ],
  );
  const byItem = new Map(rows.map((row) => [row.item, row]));
  return items.map((_, index) => toAnswer(byItem.get(index + 1)));
}

export interface StreamCall {
  readonly seq: number;
  /** Null: written in a step. */
  readonly kind?: 'stream' | 'stream-close' | null;
  readonly stream?: string;
  readonly nonce?: string;
  /** With a place, it is written once per step. */
  readonly place?: number;
}

/** Entries of streams of several workflows in one call; answers in the order of the entries. */
export async function streamGroups(
  ask: Ask,
  groups: readonly { readonly who: Owner; readonly entries: readonly StreamCall[] }[],
): Promise<Answer[]> {
  const items = groups.flatMap(({ who, entries }) =>
    entries.map((entry, index) => ({ who, entry, count: index === 0 ? entries.length : 0 })),
  );
  const rows = await ask<AnswerRow>(
    `SELECT item, ${FOUND} FROM @stream_batch($1::text[], $2::uuid[], $3::int8[], $4::int4[], $5::uuid[], $6::int4[],
       $7::text[], $8::text[], $9::text[], $10::text[], $11::int4[], $12::int4[], $13::int4[])`,
    [
      items.map(({ who }) => who.id),
      items.map(({ who }) => who.token),
      items.map(({ who }) => who.version),
      items.map(({ count }) => count),
      items.map(({ entry }) => entry.nonce ?? randomUUID()),
      items.map(({ entry }) => entry.seq),
      items.map(({ entry }) => entry.kind ?? null),
      items.map(({ entry }) => entry.stream ?? 's'),
      items.map(({ entry }) => (entry.kind === 'stream-close' ? null : '"value"')),
      items.map(({ entry }) => ((entry.kind ?? null) === null ? null : '"output"')),
      items.map(() => 1),
      items.map(({ entry }) => entry.place ?? null),
      items.map(() => 0),
    ],
  );
  const byItem = new Map(rows.map((row) => [row.item, row]));
  return items.map((_, index) => toAnswer(byItem.get(index + 1)));
}

export async function streamBatch(ask: Ask, who: Owner, entries: readonly StreamCall[]): Promise<Answer[]> {
  return streamGroups(ask, [{ who, entries }]);
}

export async function complete(ask: Ask, who: Writer, output = '"result"'): Promise<Answer> {
  const [row] = await ask<AnswerRow>(
    `SELECT ${FOUND} FROM @complete_batch(ARRAY[$1::text], ARRAY[$2::uuid], ARRAY[$3::int8], ARRAY[$4::uuid],
       ARRAY['SUCCESS'::text], ARRAY[$5::text], ARRAY[NULL::text], ARRAY[NULL::text])`,
    [who.id, who.token, who.version, who.nonce ?? randomUUID(), output],
  );
  return toAnswer(row);
}

export interface IntentCall {
  readonly seq: number;
  readonly sleepMs?: number;
  readonly child?: { readonly id: string; readonly token: string; readonly name?: string };
}

export async function recordIntent(ask: Ask, who: Writer, { seq, sleepMs, child }: IntentCall): Promise<Answer> {
  const [row] = await ask<AnswerRow>(
    `SELECT ${FOUND}, remaining_ms, child FROM @record_intent($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, 'wait',
       $6::text, $7::int8, NULL, $8::text, $9::text, NULL, $10::uuid, $11::text, $12::text, $13::int4, NULL, NULL)`,
    [
      who.id,
      who.token,
      who.version,
      who.nonce ?? randomUUID(),
      seq,
      child === undefined ? 'sleep' : 'workflow',
      sleepMs ?? null,
      child?.id ?? null,
      child === undefined ? null : (child.name ?? 'child-flow'),
      child?.token ?? null,
      child === undefined ? null : '"child input"',
      child === undefined ? null : 'cancel',
      child === undefined ? null : 100,
    ],
  );
  return toAnswer(row);
}

export async function releaseWorkflow(
  ask: Ask,
  who: Writer,
  status: 'ENQUEUED' | 'DELAYED' | 'BLOCKED' = 'ENQUEUED',
): Promise<Answer> {
  const [row] = await ask<AnswerRow>(
    `SELECT ${FOUND} FROM @release_workflow($1::text, $2::uuid, $3::int8, $4::uuid, $5::text, $6::int8, false, $7::text, NULL)`,
    [
      who.id,
      who.token,
      who.version,
      who.nonce ?? randomUUID(),
      status,
      status === 'DELAYED' ? 3_600_000 : null,
      status === 'BLOCKED' ? 'TEST' : null,
    ],
  );
  return toAnswer(row);
}

export interface ClaimCall {
  readonly executor?: string;
  readonly incarnation?: number;
  readonly appVersion?: string;
  readonly names?: readonly string[];
  readonly limit?: number;
  readonly only?: readonly string[] | null;
}

export interface Claimed extends Row {
  readonly workflow_id: string;
  readonly token: string;
  readonly epoch: number;
  readonly record_version: number;
  readonly attempts: number;
  readonly reason: string;
}

export function claim(ask: Ask, call: ClaimCall = {}): Promise<Claimed[]> {
  return ask<Claimed>(
    `SELECT workflow_id, token::text AS token, epoch::float8 AS epoch, record_version::float8 AS record_version, attempts,
            reason
       FROM @claim_workflows($1::text, $2::int8, $3::text, $4::text[], $5::int4, $6::text[], '"too many attempts"')`,
    [
      call.executor ?? 'claimer',
      call.incarnation ?? 1,
      call.appVersion ?? 'v1',
      call.names ?? ['flow', 'child-flow'],
      call.limit ?? 100,
      call.only ?? null,
    ],
  );
}

/** Registers an executor, with a lease that is over for a negative length. Returns its incarnation. */
export async function register(ask: Ask, id: string, leaseMs = 3_600_000, appVersion = 'v1'): Promise<number> {
  const [row] = await ask<{ incarnation: number }>(
    `SELECT @register_executor($1::text, $2::text, $3::int8, 'host', 1)::float8 AS incarnation`,
    [id, appVersion, leaseMs],
  );
  return row?.incarnation ?? 0;
}

/** What every other writer does that takes no ownership: priority, attributes. */
export async function bump(ask: Ask, id: string): Promise<void> {
  await ask('UPDATE @workflow_status SET record_version = record_version + 1 WHERE workflow_id = $1', [id]);
}

/** A control operation that ends the workflow, whatever it is doing. */
export async function cancel(ask: Ask, id: string, nonce: string = randomUUID()): Promise<void> {
  await ask(`SELECT @cancel_workflow($1::text, $2::uuid, 'somebody', NULL, 'cancel', '"cancelled"')`, [id, nonce]);
}

/** A control operation that takes the workflow out of all tables. */
export async function remove(ask: Ask, id: string, nonce: string = randomUUID()): Promise<void> {
  await ask(`SELECT @delete_workflow($1::text, $2::uuid, 'somebody', NULL, true, '"parent deleted"')`, [id, nonce]);
}
