import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineWorkflow,
  HoldfastClient,
  receive,
  runStep,
  send,
  sleep,
  type Holdfast,
  type SendOptions,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed, type Gate } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;

const gates = new Map<string, Gate>();
function gateOf(name: string): Gate {
  let found = gates.get(name);
  if (found === undefined) {
    found = gate();
    gates.set(name, found);
  }
  return found;
}

/** Receives so many messages of a topic, one after the other. */
const collect = defineWorkflow('collect', async (topic: string, count: number) => {
  const got: unknown[] = [];
  while (got.length < count) got.push(await receive(topic));
  return got;
});
/** Waits at a gate between two messages. */
const paused = defineWorkflow('paused', async (name: string) => {
  const first = await receive('t');
  await runStep('pause', () => gateOf(name).opened);
  return [first, await receive('t')];
});
const patient = defineWorkflow('patient', (timeout: number) => receive<string>('t', { timeout }));
const strict = defineWorkflow('strict', async () => {
  const Approval = z.object({ by: z.string() });
  const refused = await receive('approval', { schema: Approval }).catch((error: unknown) => (error as Error).name);
  return [refused, (await receive('approval', { schema: Approval, timeout: '1h' }))?.by];
});
const several = defineWorkflow('several', async () =>
  Promise.all([receive('a'), receive('a'), receive('a'), receive('b')]),
);
const courier = defineWorkflow('courier', async (receiver: string, texts: string[], options: SendOptions = {}) => {
  const answers = texts.map((text) =>
    send(receiver, 'post', text, options).then(
      () => 'sent',
      (error: unknown) => (error as { code: string }).code,
    ),
  );
  return Promise.all(answers);
});
const napper = defineWorkflow('napper', () => sleep('1h'));

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [collect, paused, patient, strict, several, courier, napper] });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function count(where: string): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(`SELECT count(*)::int AS n FROM holdfast.message WHERE ${where}`);
  return rows[0]?.n ?? -1;
}

async function status(workflowId: string): Promise<string | undefined> {
  const { rows } = await bed.sql.query<{ status: string }>(
    'SELECT status FROM holdfast.workflow_status WHERE workflow_id = $1',
    [workflowId],
  );
  return rows[0]?.status;
}

/** Takes a workflow away from whoever runs it and has it claimed again. */
async function rerun(workflowId: string): Promise<void> {
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1
      WHERE workflow_id = $1`,
    [workflowId],
  );
}

describe('messages', () => {
  test('C43 messages that come before the receiver waits for them are received, in the order of sending', async () => {
    await client.enqueue(collect, { workflowId: 'early', delay: '100ms' }, 't', 3);
    for (const n of [1, 2, 3]) await client.send('early', 't', n);
    expect(await holdfast.handle('early').result()).toEqual([1, 2, 3]);
  });

  test('a waiting workflow gets what is sent to it: from this process, from a client, from a handle', async () => {
    const handle = await holdfast.start(collect, { workflowId: 'waits' }, 't', 3);
    await holdfast.send('waits', 't', { from: 'here' });
    await client.send('waits', 't', new Map([['from', new Date(0)]]));
    await handle.send('t', undefined);
    expect(await handle.result()).toEqual([{ from: 'here' }, new Map([['from', new Date(0)]]), undefined]);
  });

  test('each topic is a line of its own', async () => {
    const handle = await holdfast.start(collect, {}, 'mine', 2);
    await handle.send('other', 'x');
    await handle.send('mine', 1);
    await handle.send('other', 'y');
    await handle.send('mine', 2);
    expect(await handle.result()).toEqual([1, 2]);
  });

  test('several receivers of one topic get one message each, the first come first', async () => {
    const handle = await holdfast.start(several, {});
    await waitUntil(async () => (await status(handle.workflowId)) === 'PENDING', 'it runs');
    for (const n of [1, 2, 3]) await handle.send('a', n);
    await handle.send('b', 'b');
    expect(await handle.result()).toEqual([1, 2, 3, 'b']);
  });

  test('C45 a thousand messages at once, long ones, and topics and keys with quotes, colons and emoji', async () => {
    const topic = `it's "so": 'a' 🙂`;
    const handle = await holdfast.start(collect, {}, topic, 1_000);
    const long = 'ä'.repeat(10_000);
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) =>
        (n % 2 === 0 ? holdfast : client).send(handle.workflowId, topic, n === 7 ? long : n, {
          idempotencyKey: `"${String(n)}": 🙂`,
        }),
      ),
    );
    const got = await handle.result();
    expect(got).toHaveLength(1_000);
    expect(new Set(got).size).toBe(1_000);
    expect(got).toContain(long);
    // Each sender's in its order.
    for (const parity of [0, 1]) {
      const own = got.filter((n): n is number => typeof n === 'number' && n % 2 === parity);
      expect(own).toEqual(own.toSorted((a, b) => a - b));
    }
  });

  test('an idempotency key lets one message through, however often and by whomever it is sent', async () => {
    const handle = await holdfast.start(collect, { workflowId: 'once' }, 't', 2);
    const options = { idempotencyKey: 'k' };
    await Promise.all([1, 2, 3].map((n) => (n === 2 ? client : holdfast).send('once', 't', 'once', options)));
    await bed.sql.query(`SELECT holdfast.send_message('once', 't', '"again"', 'k')`);
    await handle.send('t', 'end');
    expect(await handle.result()).toEqual(['once', 'end']);
    // Also when it has ended meanwhile.
    await client.send('once', 't', 'late', options);
    expect(await count(`workflow_id = 'once'`)).toBe(2);
  });

  test('C48 a send to a workflow that does not exist, or has ended, is a typed error', async () => {
    await expect(client.send('nobody', 't', 1)).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    const done = await holdfast.start(collect, {}, 't', 0);
    await done.result();
    for (const target of [holdfast, client]) {
      await expect(target.send(done.workflowId, 't', 1)).rejects.toMatchObject({
        code: 'RECEIVER_ENDED',
        status: 'SUCCESS',
      });
    }
    expect(await count(`workflow_id IN ('nobody', '${done.workflowId}')`)).toBe(0);
  });

  test('C48 inside a workflow, what a send was refused for is recorded: a replay does not send again', async () => {
    const done = await holdfast.start(collect, {}, 't', 0);
    await done.result();
    expect(await (await holdfast.start(courier, {}, 'nobody', ['x'])).result()).toEqual(['WORKFLOW_NOT_FOUND']);
    const refused = await holdfast.start(courier, { workflowId: 'refused' }, done.workflowId, ['x']);
    expect(await refused.result()).toEqual(['RECEIVER_ENDED']);
    await holdfast.admin.rewind(done.workflowId, { toStep: 0 });
    await holdfast.admin.rewind('refused', { toStep: 1 });
    expect(await holdfast.handle('refused').result()).toEqual(['RECEIVER_ENDED']);
  });

  test('messages of one workflow to another arrive in the order of the calls, once, also when it runs again', async () => {
    const receiver = await holdfast.start(collect, {}, 'post', 5);
    const sender = await holdfast.start(courier, { workflowId: 'sender' }, receiver.workflowId, ['1', '2', '3', '4']);
    expect(await sender.result()).toEqual(['sent', 'sent', 'sent', 'sent']);
    await holdfast.admin.rewind('sender', { toStep: 4 });
    expect(await holdfast.handle('sender').result()).toEqual(['sent', 'sent', 'sent', 'sent']);
    await receiver.send('post', 'end');
    expect(await receiver.result()).toEqual(['1', '2', '3', '4', 'end']);
    const { rows } = await bed.sql.query(
      `SELECT DISTINCT sender FROM holdfast.message WHERE workflow_id = $1 ORDER BY sender`,
      [receiver.workflowId],
    );
    expect(rows).toEqual([{ sender: 'sender' }, { sender: null }]);
  });

  test('a received message is part of the record: another execution gets the same one and goes on from there', async () => {
    const handle = await holdfast.start(paused, { workflowId: 'again' }, 'again');
    await handle.send('t', 'first');
    await handle.send('t', 'second');
    await waitUntil(async () => (await count(`workflow_id = 'again' AND consumed_seq = 0`)) === 1, 'it got the first');
    await rerun('again');
    gateOf('again').open();
    expect(await handle.result()).toEqual(['first', 'second']);
  });

  test('receive gives undefined when its time has passed, at once with none, and what waits also then', async () => {
    expect(await (await holdfast.start(patient, {}, 30)).result()).toBeUndefined();
    expect(await (await holdfast.start(patient, {}, 0)).result()).toBeUndefined();
    await client.enqueue(patient, { workflowId: 'in-time', delay: '50ms' }, 0);
    await client.send('in-time', 't', 'there');
    expect(await holdfast.handle('in-time').result()).toBe('there');
  });

  test('C20 the end of a receive is fixed when it begins: another execution does not wait longer', async () => {
    const handle = await holdfast.start(patient, { workflowId: 'fixed' }, 3_600_000);
    const intent = (): Promise<{ rows: { wake_at: Date }[] }> =>
      bed.sql.query(`SELECT wake_at FROM holdfast.step_intent WHERE workflow_id = 'fixed'`);
    await waitUntil(async () => (await intent()).rows.length === 1, 'its end is recorded');
    await bed.sql.query(
      `UPDATE holdfast.step_intent SET wake_at = clock_timestamp() + interval '50 ms' WHERE workflow_id = 'fixed'`,
    );
    await rerun('fixed');
    expect(await handle.result()).toBeUndefined();
  });

  test('C15 a workflow that waits for a message ends promptly when it is cancelled, and its slot is free', async () => {
    const handle = await holdfast.start(collect, {}, 't', 2);
    await handle.send('t', 'first');
    await waitUntil(
      async () => (await holdfast.admin.steps(handle.workflowId)).items.length === 1,
      'it waits for the second',
    );
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await waitUntil(() => holdfast.health().running === 0, 'nothing runs');
  });

  test('a message that does not fit the schema is an error in the workflow, which goes on with the next one', async () => {
    const handle = await holdfast.start(strict, {});
    await handle.send('approval', { by: 7 });
    await handle.send('approval', { by: 'ada' });
    expect(await handle.result()).toEqual(['SchemaViolationError', 'ada']);
  });

  test('without notifications everything works at the pace of the poll', async () => {
    const quiet = await bed.launch({ workflows: [], notifications: false });
    const deaf = await HoldfastClient.connect({
      database: bed.database.url,
      notifications: false,
      pollInterval: 20,
      logger: silentLogger,
    });
    const handle = await holdfast.start(collect, {}, 't', 2);
    await deaf.send(handle.workflowId, 't', 1);
    await quiet.send(handle.workflowId, 't', 2);
    expect(await deaf.handle(handle.workflowId).result()).toEqual([1, 2]);
    await deaf.close();
    await quiet.close();
  });

  test('C9 a send, and a receive, whose reply was lost recognise their own commit', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const relay = defineWorkflow('relay', async (receiver: string) => {
      await send(receiver, 't', await receive('t'));
    });
    const lossy = await bed.launch({
      workflows: [relay],
      database: proxy.connectionString(bed.database.url),
      notifications: false,
    });
    const receiver = await holdfast.start(collect, {}, 't', 2);
    const handle = await lossy.start(relay, {}, receiver.workflowId);
    const faults = [/send_batch/, /consume_message/, /record_send/].map((statement) =>
      proxy.arm({ do: 'drop-reply' }, statement, { times: 1 }),
    );
    await lossy.send(handle.workflowId, 't', 'once');
    await lossy.send(receiver.workflowId, 't', 'before');
    await handle.result();
    expect(faults.map(({ hits }) => hits)).toEqual([1, 1, 1]);
    expect((await receiver.result()) as string[]).toHaveLength(2);
    expect(await count(`workflow_id IN ('${handle.workflowId}', '${receiver.workflowId}')`)).toBe(3);
    await lossy.close();
    await proxy.close();
  });
});

describe('bad input', () => {
  test.each<[string, [string, string, unknown, SendOptions?], string]>([
    ['an empty topic', ['w', '', 1], 'INVALID_ARGUMENT'],
    ['a topic of 256 bytes', ['w', 'x'.repeat(256), 1], 'INVALID_ARGUMENT'],
    ['a topic with NUL', ['w', 'a\0', 1], 'INVALID_ARGUMENT'],
    ["a topic of Holdfast's own", ['w', 'holdfast:x', 1], 'INVALID_ARGUMENT'],
    ['an empty idempotency key', ['w', 't', 1, { idempotencyKey: '' }], 'INVALID_ARGUMENT'],
    ['a misspelt option', ['w', 't', 1, { idempotency: 'x' } as SendOptions], 'INVALID_ARGUMENT'],
    ['a workflow ID that is none', ['', 't', 1], 'INVALID_ARGUMENT'],
    ['a function as message', ['w', 't', () => 1], 'VALUE_NOT_SERIALIZABLE'],
    ['a message of 17 MiB', ['w', 't', 'x'.repeat(17 * 1024 * 1024)], 'PAYLOAD_TOO_LARGE'],
    ['a pool as transaction', ['w', 't', 1, { transaction: new pg.Pool() as never }], 'INVALID_ARGUMENT'],
  ])('%s is refused before anything is written', async (_, [workflowId, topic, message, options], code) => {
    for (const target of [holdfast, client]) {
      await expect(target.send(workflowId, topic, message, options)).rejects.toMatchObject({ code });
    }
  });

  test('receive and send work in the workflow only; in a step, holdfast.send is a plain send', async () => {
    await expect(receive('t')).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    await expect(send('w', 't', 1)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    const receiver = await holdfast.start(collect, {}, 't', 2);
    const inside = defineWorkflow('inside', async () => {
      const refused = await runStep('receives', () => receive('t')).catch((error: unknown) => (error as Error).name);
      await runStep('sends', () => own.send(receiver.workflowId, 't', 'from a step'));
      await own.send(receiver.workflowId, 't', 'from the workflow');
      return refused;
    });
    const own = await bed.launch({ workflows: [inside] });
    expect(await (await own.start(inside, { workflowId: 'inside' })).result()).toBe('OutsideWorkflowError');
    expect(await receiver.result()).toEqual(['from a step', 'from the workflow']);
    const { items } = await own.admin.steps('inside');
    expect(items.map(({ kind }) => kind)).toEqual(['step', 'step', 'send']);
    await own.close();
  });
});

describe("the caller's own transaction", () => {
  test('a message is there exactly if it commits: pg', async () => {
    const own = new pg.Client({ connectionString: bed.database.url });
    await own.connect();
    const handle = await holdfast.start(collect, { workflowId: 'pg' }, 't', 1);
    await own.query('BEGIN');
    await client.send('pg', 't', 'rolled back', { transaction: own });
    await own.query('ROLLBACK');
    await own.query('BEGIN');
    await holdfast.send('pg', 't', 'it\'s "so" \u0000 \\', { transaction: own });
    // A refusal leaves the transaction usable.
    await expect(client.send('nobody', 't', 1, { transaction: own })).rejects.toMatchObject({
      code: 'WORKFLOW_NOT_FOUND',
    });
    expect(await count(`workflow_id = 'pg'`)).toBe(0);
    await own.query('COMMIT');
    expect(await handle.result()).toEqual(['it\'s "so" \u0000 \\']);
    await own.end();
  });

  test('a message is there exactly if it commits: postgres', async () => {
    const sql = postgres(bed.database.url);
    const handle = await holdfast.start(collect, { workflowId: 'porsager' }, 't', 1);
    await sql
      .begin(async (transaction) => {
        await client.send('porsager', 't', 'rolled back', { transaction });
        throw new Error('changed my mind');
      })
      .catch(() => undefined);
    await sql.begin((transaction) => client.send('porsager', 't', { a: [1] }, { transaction }));
    expect(await handle.result()).toEqual([{ a: [1] }]);
    await sql.end();
  });

  test('inside a workflow there is none', async () => {
    const wrong = defineWorkflow('wrong', () => send('x', 't', 1, { transaction: bed.sql }));
    const own = await bed.launch({ workflows: [wrong] });
    await expect((await own.start(wrong, {})).result()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await own.close();
  });

  test('an open transaction that sends under a key holds up only who sends to the same workflow', async () => {
    const held = await holdfast.start(collect, { workflowId: 'held' }, 't', 3);
    const free = await holdfast.start(collect, { workflowId: 'free' }, 't', 1);
    await bed.sql.query('BEGIN');
    await bed.sql.query(`SELECT holdfast.send_message('held', 't', '"mine"', 'key')`);
    const waiting = [
      client.send('held', 't', 'theirs', { idempotencyKey: 'key' }),
      client.send('held', 't', 'second'),
      client.send('held', 't', 'third'),
    ];
    await client.send('free', 't', 'free');
    expect(await free.result()).toEqual(['free']);
    await bed.sql.query('COMMIT');
    await Promise.all(waiting);
    expect(await held.result()).toEqual(['mine', 'second', 'third']);
  });

  test('a trigger sends: one message for each row, in the transaction of the row', async () => {
    await bed.sql.query(`
      CREATE TABLE payment (order_id text, cents int);
      CREATE FUNCTION on_payment() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM holdfast.send_message(NEW.order_id, 'paid', jsonb_build_object('cents', NEW.cents));
        RETURN NEW;
      END $$;
      CREATE TRIGGER paid AFTER INSERT ON payment FOR EACH ROW EXECUTE FUNCTION on_payment()`);
    const handle = await holdfast.start(collect, { workflowId: 'order' }, 'paid', 2);
    await bed.sql.query(
      `BEGIN; INSERT INTO payment VALUES ('order', 0); ROLLBACK; INSERT INTO payment VALUES ('order', 1), ('order', 2)`,
    );
    expect(await handle.result()).toEqual([{ cents: 1 }, { cents: 2 }]);
  });

  test('send_message says by SQLSTATE what is wrong', async () => {
    const done = await holdfast.start(collect, { workflowId: 'sql-done' }, 't', 0);
    await done.result();
    const codes: (string | undefined)[] = [];
    for (const call of [`'nobody', 't'`, `'sql-done', 't'`, `'sql-done', ''`, `'sql-done', 'holdfast:x'`]) {
      codes.push(
        await bed.sql.query(`SELECT holdfast.send_message(${call})`).then(
          () => undefined,
          (error: unknown) => (error as { code: string }).code,
        ),
      );
    }
    expect(codes).toEqual(['HF011', 'HF012', '22023', '22023']);
    const nap = await holdfast.start(napper, {});
    const ask = `SELECT holdfast.send_message('${nap.workflowId}', 't', 'null', 'k') AS sent`;
    expect((await bed.sql.query(ask)).rows).toEqual([{ sent: true }]);
    expect((await bed.sql.query(ask)).rows).toEqual([{ sent: false }]);
  });
});
