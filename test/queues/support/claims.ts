import type { Ask, Row } from '../../store/support-protocol.js';

export interface WorkClaim {
  readonly executor?: string;
  readonly incarnation?: number;
  readonly appVersion?: string;
  readonly names?: readonly string[];
  readonly limit?: number;
  readonly only?: readonly string[];
  /** `turns` of the claim before. */
  readonly turns?: unknown;
}

export interface ClaimedItem {
  readonly id: string;
  readonly token: string;
  readonly version: number;
  readonly reason: string;
}

export interface WorkClaimed {
  readonly items: readonly ClaimedItem[];
  readonly ids: readonly string[];
  /** What the claim says of what it left; undefined when nothing waits. */
  readonly report:
    | { readonly limited: boolean; readonly againInMs: number | null; readonly soon: boolean; readonly turns: unknown }
    | undefined;
}

interface ClaimedRow extends Row {
  readonly workflow_id: string | null;
  readonly token: string;
  readonly record_version: number;
  readonly reason: string;
  readonly report: string | null;
}

export const CLAIM_WORK = `@claim_work($1::text, $2::int8, $3::text, $4::text[], $5::int4, $6::text[], '"too many"', $7::text::jsonb)`;

export function claimParameters(call: WorkClaim): unknown[] {
  return [
    call.executor ?? 'one',
    call.incarnation ?? 1,
    call.appVersion ?? 'v1',
    call.names ?? ['flow'],
    call.limit ?? 100,
    call.only ?? null,
    call.turns === undefined ? null : JSON.stringify(call.turns),
  ];
}

export async function claimWork(ask: Ask, call: WorkClaim = {}): Promise<WorkClaimed> {
  const rows = await ask<ClaimedRow>(
    `SELECT workflow_id, token::text AS token, record_version::float8 AS record_version, reason, report FROM ${CLAIM_WORK}`,
    claimParameters(call),
  );
  const items = rows.flatMap(({ workflow_id: id, token, record_version: version, reason }) =>
    id === null ? [] : [{ id, token, version, reason }],
  );
  const last = rows.find(({ workflow_id: id }) => id === null)?.report;
  return {
    items,
    ids: items.map(({ id }) => id),
    report: last === undefined || last === null ? undefined : (JSON.parse(last) as NonNullable<WorkClaimed['report']>),
  };
}

/** Claims until a claim brings nothing and does not ask to be repeated; returns what each of them brought. */
export async function claimUntilQuiet(ask: Ask, call: WorkClaim, most: number): Promise<(readonly string[])[]> {
  const claims: (readonly string[])[] = [];
  let turns: unknown;
  while (claims.length < most) {
    const { ids, report } = await claimWork(ask, { ...call, turns });
    turns = report?.turns;
    claims.push(ids);
    if (ids.length === 0 && report?.soon !== true) break;
  }
  return claims;
}

export interface Waiting {
  readonly queue: string;
  readonly count: number;
  /** SQL of `n`, from 1 to `count`. */
  readonly id?: string;
  readonly key?: string;
  readonly name?: string;
  readonly priority?: number;
  readonly status?: 'ENQUEUED' | 'PENDING' | 'SUSPENDED';
  readonly executor?: string;
}

/** Fills a queue with one statement. `executor`: who owns what is PENDING. */
export async function fill(ask: Ask, waiting: Waiting): Promise<void> {
  const { queue, count, id = `'${queue}-' || n`, key = `''`, name = 'flow', priority = 0 } = waiting;
  const { status = 'ENQUEUED', executor = 'other' } = waiting;
  await ask(
    `WITH filled AS (
       INSERT INTO @workflow_status (workflow_id, name, status, owner_token, epoch, record_version, executor_id, incarnation,
                                     max_attempts, app_version, wake_at, queue, priority, partition_key, queued_at,
                                     created_at, updated_at)
       SELECT ${id}, $1, $2, CASE WHEN $2 = 'PENDING' THEN gen_random_uuid() END,
              CASE WHEN $2 = 'ENQUEUED' THEN 0 ELSE 1 END, 1, CASE WHEN $2 <> 'ENQUEUED' THEN $3 END,
              CASE WHEN $2 <> 'ENQUEUED' THEN 1 END, 100, CASE WHEN $2 = 'ENQUEUED' THEN '' ELSE 'v1' END,
              CASE WHEN $2 = 'SUSPENDED' THEN @clock() END, $4, $5, ${key},
              @clock() + n * interval '1 us', @clock(), @clock()
         FROM generate_series(1, $6::int) n
       RETURNING workflow_id)
     INSERT INTO @workflow_input (workflow_id, input, nonce, created_at)
     SELECT workflow_id, '[]', gen_random_uuid(), @clock() FROM filled`,
    [name, status, executor, queue, priority, count],
  );
}

/** Columns of the queue's row. */
export async function define(ask: Ask, name: string, limits: Readonly<Record<string, number>> = {}): Promise<void> {
  await ask('SELECT @define_queues($1::text::jsonb, false)', [JSON.stringify([{ name, ...limits }])]);
}
