import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createBed, type Bed } from '../support/launch.js';

// The server's table of locks has room for some thousands, which all transactions share: none of ours may take as many as there are keys.

const MOST_LOCKS = 300;
const TOPICS = 20;
const KEYS_OF_TOPIC = 40;
const LANES = TOPICS * KEYS_OF_TOPIC;
const topics = Array.from({ length: TOPICS }, (_, n) => `topic ${String(n)}`);

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
  await bed.launch({ workflows: [] });
});
beforeEach(async () => {
  await bed.sql.query('DELETE FROM holdfast.outbox_event');
});
afterAll(() => bed.close());

/** `events` of each of many lanes. */
async function addMany(events: number, workflowId: string | null): Promise<void> {
  await bed.sql.query(
    `INSERT INTO holdfast.outbox_event (event_id, topic, event_key, payload, state, workflow_id, seq, due_at, added_at)
     SELECT gen_random_uuid(), topic, 'key ' || key, '1', 'new', $3, e, clock_timestamp(), clock_timestamp()
       FROM generate_series(1, $4::int) e, unnest($1::text[]) AS topic, generate_series(1, $2::int) key`,
    [topics, KEYS_OF_TOPIC, workflowId, events],
  );
}

const claim = `SELECT holdfast.claim_events($1::text[], array_fill(1, ARRAY[cardinality($1::text[])]), 60000)`;

/** Advisory locks that a call holds when it is done. */
async function locksOf(text: string, values: unknown[]): Promise<number> {
  await bed.sql.query('BEGIN');
  await bed.sql.query(text, values);
  const { rows } = await bed.sql.query<{ locks: number }>(
    `SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`,
  );
  await bed.sql.query('COMMIT');
  return rows[0]?.locks ?? NaN;
}

async function heads(): Promise<number> {
  const { rows } = await bed.sql.query<{ heads: number }>(
    `SELECT count(*)::int AS heads FROM holdfast.outbox_event WHERE state = 'ready'`,
  );
  return rows[0]?.heads ?? NaN;
}

test('however many keys have new events, one claim looks at a bounded number, and the next ones at the rest', async () => {
  await addMany(2, null);
  expect(await locksOf(claim, [topics])).toBeLessThanOrEqual(MOST_LOCKS);
  const first = await heads();
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(LANES);
  for (let claims = 0; claims < 5; claims++) expect(await locksOf(claim, [topics])).toBeLessThanOrEqual(MOST_LOCKS);
  expect(await heads()).toBe(LANES);
});

test('a topic with many new keys does not keep another one waiting for its own', async () => {
  await addMany(1, null);
  for (let key = 0; key < 1_000; key += 250) {
    await bed.sql.query(
      `SELECT holdfast.add_to_outbox('busy', '1', 'key ' || k) FROM generate_series($1::int, $1::int + 249) k`,
      [key],
    );
  }
  for (let claims = 0; claims < 20; claims++) await bed.sql.query(claim, [['busy', ...topics]]);
  const { rows } = await bed.sql.query(`SELECT FROM holdfast.outbox_event WHERE state = 'new'`);
  expect(rows).toEqual([]);
});

test('a rewind that takes back events of very many keys takes few locks, and what others have added goes on', async () => {
  await addMany(1, 'rewound');
  await addMany(1, null);
  for (let claims = 0; claims < 6; claims++) await bed.sql.query(claim, [topics]);
  expect(await locksOf(`SELECT holdfast.retract_events('rewound', 0)`, [])).toBeLessThanOrEqual(MOST_LOCKS);
  expect(await heads()).toBe(LANES);
});

test('while all lanes are locked, a claim does not wait, and takes what has its place already', async () => {
  await addMany(1, null);
  await bed.sql.query(claim, [topics]);
  const before = await heads();
  await bed.sql.query('BEGIN');
  await bed.sql.query('SELECT pg_advisory_xact_lock(holdfast.all_lanes_lock())');
  const other = new pg.Client({ connectionString: bed.database.url });
  await other.connect();
  await other.query(`UPDATE holdfast.outbox_event SET due_at = clock_timestamp() WHERE state = 'ready'`);
  const { rows } = await other.query(claim, [topics]);
  expect(rows.length).toBeGreaterThan(0);
  expect(await heads()).toBe(before);
  await bed.sql.query('COMMIT');
  await other.end();
});
