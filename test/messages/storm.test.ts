import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, HoldfastClient, receive, send, setEvent } from '../../src/index.js';
import { createBed, silentLogger, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const WORKFLOWS = 10;
const MESSAGES = 20;

/** Receives numbers, passes each on, and tells how far it is. */
const relay = defineWorkflow('relay', async (to: string) => {
  const got: number[] = [];
  while (got.length < MESSAGES) {
    const n = await receive<number>('numbers');
    got.push(n);
    await send(to, 'numbers', n);
    await setEvent('last', n);
  }
  return got;
});
const sink = defineWorkflow('sink', async (count: number) => {
  const got: number[] = [];
  while (got.length < count) got.push(await receive<number>('numbers'));
  return got;
});

test('C42 whoever owns the workflows, and however often that changes, each message is received once and in order', async () => {
  const options = { workflows: [relay, sink], pollInterval: 20, suspendAfter: 30 };
  const executors = await Promise.all([1, 2, 3].map(() => bed.launch(options)));
  const [first] = executors;
  if (first === undefined) throw new Error('Nothing was launched.');
  const client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
  const ids = Array.from({ length: WORKFLOWS }, (_, index) => `relay-${String(index)}`);
  for (const id of ids) {
    await first.start(sink, { workflowId: `sink of ${id}` }, MESSAGES);
    await first.start(relay, { workflowId: id }, `sink of ${id}`);
  }
  const over = new AbortController();
  const stealing = (async () => {
    while (!over.signal.aborted) {
      // Some of those that run are taken away, in the middle of whatever they do.
      await bed.sql.query(`
        UPDATE holdfast.workflow_status
           SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1, attempts = 0
         WHERE status = 'PENDING' AND random() < 0.3`);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  })();
  await Promise.all(
    ids.map(async (id) => {
      for (let n = 0; n < MESSAGES; n++) {
        await client.send(id, 'numbers', n, { idempotencyKey: `number ${String(n)}` });
        if (n % 3 === 0) await client.send(id, 'numbers', n, { idempotencyKey: `number ${String(n)}` });
      }
    }),
  );
  const expected = Array.from({ length: MESSAGES }, (_, n) => n);
  for (const id of ids) {
    expect(await client.handle(id).result()).toEqual(expected);
    expect(await client.handle(`sink of ${id}`).result()).toEqual(expected);
    expect(await client.getEvent(id, 'last')).toBe(MESSAGES - 1);
  }
  over.abort();
  await stealing;
  const { rows } = await bed.sql.query(
    `SELECT workflow_id, attention FROM holdfast.workflow_status WHERE attention IS NOT NULL`,
  );
  expect(rows).toEqual([]);
  await client.close();
}, 60_000);
