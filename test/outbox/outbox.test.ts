import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  continueAsNew,
  defineQuery,
  defineWorkflow,
  HoldfastClient,
  NonRetryableError,
  outbox,
  receive,
  runStep,
  runTransaction,
  transaction,
  type Holdfast,
  type OutboxEvent,
  type PayloadCodec,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
let delivered: OutboxEvent[] = [];
/** For topics whose events are delivered; those of others stay where they can be seen. */
const take = (event: OutboxEvent): void => {
  delivered.push(event);
};

const adds = defineWorkflow('adds', async (topic: string, payload: unknown, key?: string) => {
  await outbox.add(topic, payload, key === undefined ? {} : { key });
  return 'added';
});
const addsMany = defineWorkflow('addsMany', async (topic: string, count: number, key: string) => {
  const calls = Array.from({ length: count }, (_, n) => outbox.add(topic, n, { key }));
  await Promise.all(calls);
});

/** Adds an event, and waits for a message before it adds the next one. */
const addsTwice = defineWorkflow('addsTwice', async (topic: string) => {
  await outbox.add(topic, 'first', { key: 'k' });
  await receive('go on');
  await outbox.add(topic, 'second', { key: 'k' });
});
let attempts = 0;
const stepAdds = defineWorkflow('stepAdds', async (topic: string, end: 'returns' | 'throws' | 'returns a function') => {
  await runStep('none', () => Promise.resolve());
  return runStep(
    'step',
    async () => {
      attempts += 1;
      await outbox.add(topic, `one of attempt ${String(attempts)}`, { key: 'k' });
      void outbox.add(topic, `two of attempt ${String(attempts)}`, { key: 'k' });
      if (attempts === 1) throw new Error('not yet');
      if (end === 'throws') throw new NonRetryableError('never');
      return end === 'returns' ? 'result' : () => undefined;
    },
    { retries: { maxAttempts: 2, initialDelay: 0 } },
  );
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [adds, addsMany, addsTwice, stepAdds],
    outbox: { handlers: { taken: take } },
  });
});
beforeEach(() => {
  delivered = [];
  attempts = 0;
});
afterAll(() => bed.close());

const pending = async (topic: string): Promise<Record<string, unknown>[]> => {
  const { rows } = await bed.sql.query<Record<string, unknown>>(
    `SELECT event_id::text AS id, event_key AS key, payload, state, workflow_id, seq FROM holdfast.outbox_event
      WHERE topic = $1 ORDER BY position`,
    [topic],
  );
  return rows;
};

describe('an event that a workflow adds', () => {
  test('is on record with the call, and is delivered, decoded, with its ID, key and origin', async () => {
    const payload = { at: new Date(0), amounts: new Map([['cents', 12n]]) };
    const handle = await holdfast.start(adds, { workflowId: 'plain' }, 'taken', payload, 'k');
    expect(await handle.result()).toBe('added');
    await waitUntil(() => delivered.length === 1, 'it is delivered');
    expect(delivered[0]).toMatchObject({ topic: 'taken', key: 'k', payload, workflowId: 'plain' });
    expect(delivered[0]?.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(delivered[0]?.addedAt.getTime()).toBeGreaterThan(Date.now() - 60_000);
    await waitUntil(async () => (await pending('taken')).length === 0, 'it is gone');
    expect((await holdfast.admin.steps('plain')).items).toMatchObject([{ seq: 0, name: 'taken', kind: 'outbox' }]);
  });

  test('of one workflow and key are delivered in the order of the calls, which need not be awaited', async () => {
    await (await holdfast.start(addsMany, {}, 'taken', 40, 'one')).result();
    await waitUntil(() => delivered.length === 40, 'they are delivered');
    expect(delivered.map(({ payload }) => payload)).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });
});

describe('an event commits together with the record of its call', () => {
  test('C9 the reply to the record is lost: the event is there once', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const here = await bed.launch({ workflows: [adds, stepAdds], database: proxy.connectionString(bed.database.url) });
    for (const [workflow, topic, args] of [
      [adds, 'lost reply', [1]],
      [stepAdds, 'lost reply of a step', ['returns']],
    ] as const) {
      const fault = proxy.arm({ do: 'drop-reply', reset: true }, /record_with_events/);
      const handle = await here.start(workflow as typeof adds, { workflowId: topic }, topic, ...(args as [unknown]));
      await handle.result();
      expect(fault.hits).toBe(1);
      expect(await pending(topic)).toHaveLength(workflow === adds ? 1 : 2);
    }
    await here.close();
    await proxy.close();
  });

  test('an execution that has lost its workflow adds nothing, and the next one what it adds', async () => {
    const before = gate();
    const fenced = defineWorkflow('fenced', async (topic: string, who: string[]) => {
      who.push('x');
      if (who.length === 1) await before.opened;
      await outbox.add(topic, 'call');
      await runStep('step', () => outbox.add(topic, 'step'));
    });
    const here = await bed.launch({ workflows: [fenced], notifications: false, pollInterval: '1h', lease: '1h' });
    await here.start(fenced, { workflowId: 'fenced' }, 'fenced', []);
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET owner_token = gen_random_uuid(), epoch = 2 WHERE workflow_id = 'fenced'`,
    );
    before.open();
    await waitUntil(() => here.health().running === 0, 'it has parked');
    expect(await pending('fenced')).toEqual([]);
    await here.admin.cancel('fenced');
    await here.close();
  });

  test('a workflow that is recovered does not add again what is on record', async () => {
    const first = await bed.launch({ workflows: [addsTwice], executorId: 'first', pollInterval: '1h' });
    await first.start(addsTwice, { workflowId: 'recovered' }, 'recovered');
    await waitUntil(async () => (await pending('recovered')).length === 1, 'the first is there');
    await bed.expireLease('first');
    await waitUntil(async () => (await holdfast.admin.get('recovered')).epoch === 2, 'it is recovered');
    await holdfast.send('recovered', 'go on', null);
    await holdfast.handle('recovered').result();
    expect((await pending('recovered')).map(({ payload }) => payload)).toEqual(['"first"', '"second"']);
    await first.close();
  });
});

describe('what the body of a step adds', () => {
  test('is there if and only if its result is: of the attempt that brought it, all; of those that failed, nothing', async () => {
    const handle = await holdfast.start(stepAdds, { workflowId: 'step adds' }, 'step adds', 'returns');
    expect(await handle.result()).toBe('result');
    expect((await pending('step adds')).map(({ payload }) => payload)).toEqual([
      '"one of attempt 2"',
      '"two of attempt 2"',
    ]);
    expect((await holdfast.admin.steps('step adds')).items).toMatchObject([
      {},
      { kind: 'step', name: 'step', attempts: 2 },
    ]);
  });

  test.each(['throws', 'returns a function'] as const)('is nothing when the step %s', async (end) => {
    const handle = await holdfast.start(stepAdds, {}, `step ${end}`, end);
    await expect(handle.result()).rejects.toThrow();
    expect(await pending(`step ${end}`)).toEqual([]);
  });

  test('is refused once the attempt is over, and when the payload cannot be stored', async () => {
    const codes: unknown[] = [];
    const note = (error: unknown): void => {
      codes.push((error as { code: string }).code);
    };
    const late = gate();
    const refused = gate();
    const isLate = defineWorkflow('isLate', async () => {
      await runStep('late', () => {
        void late.opened
          .then(() => outbox.add('late', 1))
          .catch(note)
          .finally(() => {
            refused.open();
          });
        return outbox.add('late', () => undefined).catch(note);
      });
      late.open();
      await runStep('wait', () => refused.opened);
    });
    const here = await bed.launch({ workflows: [isLate] });
    await (await here.start(isLate, {})).result();
    expect(codes).toEqual(['VALUE_NOT_SERIALIZABLE', 'OUTSIDE_WORKFLOW']);
    expect(await pending('late')).toEqual([]);
    await here.close();
  });

  test('is bounded: what does not fit any more is refused, and the rest commits', async () => {
    let refused: unknown;
    const addsMuch = defineWorkflow('addsMuch', () =>
      runStep('step', async () => {
        const large = 'x'.repeat(1_000_000);
        for (let n = 0; n < 16; n++) await outbox.add('much', large);
        await outbox.add('much', large).catch((error: unknown) => {
          refused = error;
        });
        await outbox.add('much', 'small');
      }),
    );
    const here = await bed.launch({ workflows: [addsMuch] });
    await (await here.start(addsMuch, {})).result();
    expect(refused).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', limitBytes: 16 * 2 ** 20 });
    expect(await pending('much')).toHaveLength(17);
    await here.close();
  });

  test('with a codec that takes its time, all of it is there in the order of the calls, encoded', async () => {
    let delay = 30;
    const slow: PayloadCodec = {
      name: 'slow',
      encode: async (text) => {
        await new Promise((resolve) => setTimeout(resolve, (delay -= 10)));
        return Buffer.from(text).toString('base64');
      },
      decode: (data) => Promise.resolve(Buffer.from(data, 'base64').toString()),
    };
    const encodes = defineWorkflow('encodes', async () => {
      await runStep('step', () => {
        delay = 30;
        void outbox.add('encoded', 1, { key: 'k' });
        void outbox.add('encoded', 2, { key: 'k' });
        return Promise.resolve();
      });
      delay = 40;
      await Promise.all([outbox.add('encoded', 3, { key: 'k' }), outbox.add('encoded', 4, { key: 'k' })]);
    });
    const here = await bed.launch({ workflows: [encodes], codecs: [slow] });
    await (await here.start(encodes, {})).result();
    const stored = await pending('encoded');
    expect(stored.map(({ payload }) => payload)).not.toContain('1');
    const { items } = await here.admin.outbox.list({ topic: 'encoded', payload: true });
    expect(items.map(({ payload }) => payload)).toEqual([1, 2, 3, 4].map((value) => ({ readable: true, value })));
    await here.close();
  });
});

describe('what the body of a transaction adds', () => {
  test('commits with it: of the run that committed, all; of one that was rolled back, nothing', async () => {
    await bed.sql.query('CREATE TABLE account (cents integer)');
    let runs = 0;
    const pays = defineWorkflow('pays', async () =>
      runTransaction(
        'pay',
        async () => {
          runs += 1;
          const { client } = transaction<pg.PoolClient>();
          await client.query('INSERT INTO account VALUES ($1)', [runs]);
          await outbox.add('paid', `run ${String(runs)}`, { key: 'k' });
          await outbox.add('paid', 'receipt', { key: 'k' });
          // A serialisation failure: the body is run again.
          if (runs === 1) await client.query(`DO $$ BEGIN RAISE SQLSTATE '40001'; END $$`);
          if (runs === 2) throw new Error('not yet');
          return runs;
        },
        { retries: { maxAttempts: 2, initialDelay: 0 } },
      ),
    );
    const proxy = await startPgProxyFor(bed.database.url);
    const here = await bed.launch({ workflows: [pays], database: proxy.connectionString(bed.database.url) });
    const fault = proxy.arm({ do: 'drop-reply' }, /^commit/i);
    const handle = await here.start(pays, { workflowId: 'pays' });
    expect(await handle.result()).toBe(3);
    expect(fault.hits).toBe(1);
    expect((await pending('paid')).map(({ payload, seq }) => [payload, seq])).toEqual([
      ['"run 3"', 0],
      ['"receipt"', 0],
    ]);
    expect((await bed.sql.query('SELECT cents FROM account')).rows).toEqual([{ cents: 3 }]);
    await here.close();
    await proxy.close();
  });
});

describe('events and control operations', () => {
  test('a rewind takes back what is not delivered, and the new run adds it again under the same IDs', async () => {
    const rewinds = defineWorkflow('rewinds', async () => {
      for (let n = 0; n < 4; n++) await outbox.add('rewound', n, { key: 'k' });
    });
    const first = await bed.launch({ workflows: [rewinds] });
    await (await first.start(rewinds, { workflowId: 'rewound' })).result();
    await first.close();
    const before = await pending('rewound');
    expect(before).toHaveLength(4);
    // The first is delivered: it is gone.
    await bed.sql.query(`DELETE FROM holdfast.outbox_event WHERE event_id = $1`, [before[0]?.['id']]);
    await holdfast.admin.rewind('rewound', { toStep: 2 });
    expect((await pending('rewound')).map(({ payload }) => payload)).toEqual(['1']);
    await holdfast.admin.rewind('rewound', { toStep: 0 });
    expect(await pending('rewound')).toEqual([]);
    const second = await bed.launch({ workflows: [rewinds] });
    await second.handle('rewound').result();
    expect((await pending('rewound')).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    await second.close();
  });

  test('a fork adds what it runs itself, under IDs of its own; its source keeps its events', async () => {
    await (await holdfast.start(adds, { workflowId: 'source' }, 'forked', 1)).result();
    await holdfast.admin.fork('source', { fromStep: 1, workflowId: 'fork after' });
    await holdfast.handle('fork after').result();
    expect(await pending('forked')).toHaveLength(1);
    await holdfast.admin.fork('source', { fromStep: 0, workflowId: 'fork before' });
    await holdfast.handle('fork before').result();
    const events = await pending('forked');
    expect(events.map(({ workflow_id: id }) => id)).toEqual(['source', 'fork before']);
    expect(new Set(events.map(({ id }) => id)).size).toBe(2);
  });

  test('C71 events outlive their workflow; a later one of the same ID has others, and cannot take these back', async () => {
    await (await holdfast.start(adds, { workflowId: 'reused' }, 'outlived', 1)).result();
    await holdfast.admin.delete('reused');
    expect(await pending('outlived')).toMatchObject([{ payload: '1', workflow_id: 'reused', seq: null }]);
    await (await holdfast.start(adds, { workflowId: 'reused' }, 'outlived', 2)).result();
    expect(new Set((await pending('outlived')).map(({ id }) => id)).size).toBe(2);
    await holdfast.admin.rewind('reused', { toStep: 0 });
    await holdfast.handle('reused').result();
    expect((await pending('outlived')).map(({ payload }) => payload)).toEqual(['1', '2']);
  });

  test('continue-as-new keeps events, and numbers those of the next run on', async () => {
    const goesOn = defineWorkflow('goesOn', async (round: number): Promise<unknown> => {
      await outbox.add('continued', round);
      return round < 2 ? continueAsNew(goesOn, round + 1) : round;
    });
    const here = await bed.launch({ workflows: [goesOn] });
    await (await here.start(goesOn, {}, 0)).result();
    const events = await pending('continued');
    expect(events.map(({ payload }) => payload)).toEqual(['0', '1', '2']);
    expect(new Set(events.map(({ id }) => id)).size).toBe(3);
    await here.close();
  });

  test('a workflow that fails, or is cancelled, has added what it has added', async () => {
    const fails = defineWorkflow('fails', async () => {
      await outbox.add('failed', 1);
      throw new Error('after all');
    });
    const here = await bed.launch({ workflows: [fails] });
    await expect((await here.start(fails, {})).result()).rejects.toThrow('after all');
    expect(await pending('failed')).toHaveLength(1);
    await here.close();
  });
});

describe('from outside of workflows', () => {
  test('an event is on record when the call returns, once also if the reply is lost', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const client = await HoldfastClient.connect({
      database: proxy.connectionString(bed.database.url),
      logger: silentLogger,
    });
    await client.outbox.add('outside', { n: 1 });
    const fault = proxy.arm({ do: 'drop-reply' }, /add_events/);
    await client.outbox.add('outside', { n: 2 }, { key: 'k' });
    expect(fault.hits).toBe(1);
    expect(await pending('outside')).toMatchObject([
      { key: null, payload: '{"n":1}', workflow_id: null, state: 'ready' },
      { key: 'k', payload: '{"n":2}', workflow_id: null, state: 'new' },
    ]);
    await holdfast.outbox.add('taken', 'from here');
    await waitUntil(() => delivered.length === 1, 'it is delivered');
    expect(delivered[0]).toMatchObject({ payload: 'from here', workflowId: null });
    await client.close();
    await proxy.close();
  });

  test("an event is there exactly if the caller's transaction commits: pg and postgres", async () => {
    const own = new pg.Client({ connectionString: bed.database.url });
    await own.connect();
    await own.query('BEGIN');
    await holdfast.outbox.add('transaction', 'rolled back', { transaction: own });
    await own.query('ROLLBACK');
    await own.query('BEGIN');
    await holdfast.outbox.add('transaction', 'it\'s "so" \u0000 \\', { transaction: own, key: 'quo"te' });
    expect(await pending('transaction')).toEqual([]);
    await own.query('COMMIT');
    const sql = postgres(bed.database.url);
    await sql
      .begin(async (transaction) => {
        await holdfast.outbox.add('transaction', 'rolled back', { transaction });
        throw new Error('changed my mind');
      })
      .catch(() => undefined);
    await sql.begin((transaction) => holdfast.outbox.add('transaction', [2], { transaction }));
    const { items } = await holdfast.admin.outbox.list({ topic: 'transaction', payload: true });
    expect(items).toMatchObject([
      { key: 'quo"te', payload: { value: 'it\'s "so" \u0000 \\' } },
      { key: null, payload: { value: [2] } },
    ]);
    await sql.end();
    await own.end();
  });

  test('a trigger, or any language, adds with add_to_outbox, and the relays are told at once', async () => {
    const idle = await bed.launch({ workflows: [], pollInterval: '1h', outbox: { handlers: { sql: take } } });
    // Its first look is over.
    await waitUntil(async () => (await pending('sql')).length === 0, 'nothing is there');
    const { rows } = await bed.sql.query<{ id: string }>(
      `SELECT holdfast.add_to_outbox('sql', '{"a": [1, null]}', 'k') AS id`,
    );
    await waitUntil(() => delivered.length === 1, 'it is delivered');
    expect(delivered).toMatchObject([{ id: rows[0]?.id, payload: { a: [1, null] }, key: 'k' }]);
    for (const wrong of [`''`, 'NULL', `repeat('x', 256)`]) {
      await expect(bed.sql.query(`SELECT holdfast.add_to_outbox(${wrong}, '1')`)).rejects.toMatchObject({
        code: '22023',
      });
    }
    await expect(
      bed.sql.query(`SELECT holdfast.add_to_outbox('sql', to_jsonb(repeat('x', 1048576)))`),
    ).rejects.toMatchObject({ code: '22023' });
    await idle.close();
  });
});

describe('bad use is a typed error, before anything is written', () => {
  const big = 'x'.repeat(2 ** 20);
  const cases: readonly [string, readonly unknown[], string][] = [
    ['an empty topic', ['', 1], 'INVALID_ARGUMENT'],
    ['a long topic', ['t'.repeat(256), 1], 'INVALID_ARGUMENT'],
    ['a topic that is no text', [7, 1], 'INVALID_ARGUMENT'],
    ['a NUL in the topic', ['a\0', 1], 'INVALID_ARGUMENT'],
    ['an empty key', ['bad', 1, { key: '' }], 'INVALID_ARGUMENT'],
    ['a long key', ['bad', 1, { key: 'k'.repeat(513) }], 'INVALID_ARGUMENT'],
    ['an unknown option', ['bad', 1, { keys: 'k' }], 'INVALID_ARGUMENT'],
    ['no object of options', ['bad', 1, 'k'], 'INVALID_ARGUMENT'],
    ['a function as payload', ['bad', { f: () => 1 }], 'VALUE_NOT_SERIALIZABLE'],
    ['a large payload', ['bad', big], 'PAYLOAD_TOO_LARGE'],
    ['a pool as transaction', ['bad', 1, { transaction: new pg.Pool() }], 'INVALID_ARGUMENT'],
  ];
  const wrong = defineWorkflow('wrong', async (nth: number) => {
    const [, args] = cases[nth] ?? ['', [], ''];
    await outbox.add(...(args as [string, unknown]));
  });

  test.each(cases.map((each, nth) => [...each, nth] as const))('%s', async (_, args, code, nth) => {
    await expect(holdfast.outbox.add(...(args as [string, unknown]))).rejects.toMatchObject({ code });
    const here = await bed.launch({ workflows: [wrong] });
    await expect((await here.start(wrong, {}, nth)).result()).rejects.toMatchObject({ code });
    await here.close();
    expect(await pending('bad')).toEqual([]);
  });

  test('outbox.add outside of a workflow, and in a query', async () => {
    await expect(outbox.add('bad', 1)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    const look = defineQuery<[], string>('look');
    const looked = defineWorkflow('looked', async () => {
      look.handle(async () => {
        await outbox.add('bad', 1);
        return 'added';
      });
      await receive('end');
    });
    const here = await bed.launch({ workflows: [looked] });
    const handle = await here.start(looked, { workflowId: 'looked' });
    await expect(handle.query(look)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    await here.close();
  });

  test.each([
    [{ handlers: [] }],
    [{ handlers: { '': () => 1 } }],
    [{ handlers: { a: 'not a function' } }],
    [{ handlers: {}, retries: { maxAttempts: 0 } }],
    [{ handlers: {}, timeout: '2h' }],
    [{ handlers: {}, timeout: 0 }],
    [{ handlers: {}, concurrency: 0 }],
    [{ handlers: {}, other: 1 }],
    [null],
  ])('launch with outbox: %o', async (settings) => {
    await expect(bed.launch({ workflows: [], outbox: settings as never })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});
