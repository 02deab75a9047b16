import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBed, type Bed } from '../support/launch.js';
import { pagesOf } from '../support/pages.js';

/** Enough that reading a table or an index whole, once, is far more pages than any call may touch. */
const ROWS = 40_000;

let bed: Bed;
const claim = `SELECT * FROM holdfast.claim_events(ARRAY['busy', 'quiet'], ARRAY[8, 8], 60000)`;
const settle = `SELECT * FROM holdfast.settle_events(
  ARRAY(SELECT event_id FROM holdfast.outbox_event WHERE token IS NOT NULL AND topic = 'quiet' LIMIT 1),
  ARRAY(SELECT token FROM holdfast.outbox_event WHERE token IS NOT NULL AND topic = 'quiet' LIMIT 1),
  ARRAY['delivered'], ARRAY[NULL]::int8[], ARRAY[NULL], ARRAY[NULL])`;

async function add(topic: string, key: string | null): Promise<void> {
  await bed.sql.query('SELECT holdfast.add_to_outbox($1, $2, $3)', [topic, '1', key]);
}

beforeAll(async () => {
  bed = await createBed();
  await bed.launch({ workflows: [] });
  await bed.sql.query('ALTER TABLE holdfast.outbox_event SET (autovacuum_enabled = off)');
  await bed.sql.query('ANALYZE holdfast.outbox_event');
  // The session makes and keeps its plans while there is nearly nothing.
  for (let times = 0; times < 7; times++) {
    await add('quiet', 'k');
    await add('quiet', null);
    await bed.sql.query(claim);
    await bed.sql.query(settle);
  }
  // Many behind one dead event, many that are tried again later, many in lanes of their own, many that nobody handles.
  await bed.sql.query(
    `INSERT INTO holdfast.outbox_event (event_id, topic, event_key, payload, state, due_at, added_at, died_at, reason)
     SELECT gen_random_uuid(), 'busy', 'dead', '1', CASE i WHEN 1 THEN 'dead' ELSE 'behind' END, clock_timestamp(), clock_timestamp(),
            CASE i WHEN 1 THEN clock_timestamp() END, CASE i WHEN 1 THEN 'REFUSED' END
       FROM generate_series(1, $1::int) i
     UNION ALL
     SELECT gen_random_uuid(), 'busy', 'lane ' || i, '1', 'ready', clock_timestamp() + interval '1 h', clock_timestamp(), NULL, NULL
       FROM generate_series(1, $1::int) i
     UNION ALL
     SELECT gen_random_uuid(), 'unhandled', 'lane ' || i, '1', 'new', clock_timestamp(), clock_timestamp(), NULL, NULL
       FROM generate_series(1, $1::int) i
     UNION ALL
     SELECT gen_random_uuid(), 'unhandled', NULL, '1', 'ready', clock_timestamp(), clock_timestamp(), NULL, NULL
       FROM generate_series(1, $1::int) i`,
    [ROWS],
  );
});
afterAll(() => bed.close());

const ask = async <Row>(text: string, parameters?: unknown[]): Promise<Row[]> =>
  (await bed.sql.query(text, parameters)).rows as Row[];
const pagesOfStatement = (text: string): Promise<number> => pagesOf(ask, () => ask(text));

test('with plans made when there were a few events, and 160,000 that cannot be delivered, a claim looks at what it takes', async () => {
  await add('quiet', 'k');
  await add('quiet', 'other');
  await add('quiet', null);
  expect(await pagesOfStatement(claim)).toBeLessThan(500);
  const { rows } = await bed.sql.query<{ topic: string }>(
    `SELECT topic FROM holdfast.outbox_event WHERE token IS NOT NULL AND due_at > clock_timestamp() AND attempts = 1`,
  );
  expect(rows.filter(({ topic }) => topic === 'quiet').length).toBeGreaterThanOrEqual(3);
  expect(await pagesOfStatement(claim)).toBeLessThan(200);
});

test('settling, the overview, the list of events and the attention list do not read the others either', async () => {
  const settled = `SELECT * FROM holdfast.settle_events(
    ARRAY['00000000-0000-4000-8000-000000000000']::uuid[], ARRAY['00000000-0000-4000-8000-000000000000']::uuid[],
    ARRAY['delivered'], ARRAY[NULL]::int8[], ARRAY[NULL], ARRAY[NULL])`;
  expect(await pagesOfStatement(settled)).toBeLessThan(100);
  expect(await pagesOfStatement(`SELECT * FROM holdfast.list_events(NULL, NULL, NULL, 50, false, 1000)`)).toBeLessThan(
    500,
  );
  expect(await pagesOfStatement(`SELECT * FROM holdfast.list_attention(NULL, NULL, NULL, 50)`)).toBeLessThan(500);
  // A new event of the lane with the many.
  await add('busy', 'dead');
  expect(await pagesOfStatement(claim)).toBeLessThan(500);
});
