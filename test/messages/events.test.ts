import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  defineWorkflow,
  getEvent,
  HoldfastClient,
  receive,
  setEvent,
  sleep,
  type GetEventOptions,
  type Holdfast,
} from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;

/** Sets its event to each value it is told, until it is told to end. */
const teller = defineWorkflow('teller', async (key: string) => {
  for (;;) {
    const told = await receive<{ set?: unknown; end?: boolean }>('tell');
    if (told.end === true) return 'told';
    await setEvent(key, told.set);
  }
});
/** Reads an event twice, with a message in between. */
const reader = defineWorkflow('reader', async (workflowId: string, key: string, options: GetEventOptions = {}) => {
  const first = await getEvent(workflowId, key, options).catch((error: unknown) => (error as { code: string }).code);
  await receive('again');
  return [first, await getEvent(workflowId, key, options).catch((error: unknown) => (error as { code: string }).code)];
});
const napper = defineWorkflow('napper', () => sleep('1h'));

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [teller, reader, napper] });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function rows(query: string): Promise<unknown[]> {
  return (await bed.sql.query<Record<string, unknown>>(query)).rows;
}

describe('events', () => {
  test('C43 an event that was set before anybody waits is read, and one that is waited for as well', async () => {
    const handle = await holdfast.start(teller, { workflowId: 'tells' }, 'state');
    const waiting = [client.getEvent('tells', 'state'), holdfast.getEvent('tells', 'state'), handle.getEvent('state')];
    await handle.send('tell', { set: { at: new Date(1) } });
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 3 }, () => ({ at: new Date(1) })));
    expect(await client.handle('tells').getEvent('state')).toEqual({ at: new Date(1) });
  });

  test('the current value is the one that was set last; it stays readable when the workflow has ended', async () => {
    const handle = await holdfast.start(teller, { workflowId: 'latest' }, `it's "x": 🙂`);
    for (const set of [1, 2, undefined]) await handle.send('tell', { set });
    await handle.send('tell', { end: true });
    expect(await handle.result()).toBe('told');
    expect(await client.getEvent('latest', `it's "x": 🙂`)).toBeUndefined();
    expect(await rows(`SELECT seq, value FROM holdfast.event WHERE workflow_id = 'latest' ORDER BY seq`)).toHaveLength(
      3,
    );
  });

  test('getEvent gives undefined when its time has passed', async () => {
    await holdfast.start(napper, { workflowId: 'silent' });
    expect(await client.getEvent('silent', 'x', { timeout: 20 })).toBeUndefined();
    expect(await holdfast.getEvent('silent', 'x', { timeout: 0 })).toBeUndefined();
    const handle = await holdfast.start(reader, {}, 'silent', 'x', { timeout: 20 });
    await handle.send('again', 1);
    expect(await handle.result()).toEqual([undefined, undefined]);
  });

  test('nobody waits for an event of a workflow that does not exist, has ended without it, or is deleted', async () => {
    await expect(client.getEvent('nobody', 'x')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    const handle = await holdfast.start(teller, { workflowId: 'ends' }, 'other');
    const told = [client, holdfast].map((target) =>
      expect(target.getEvent('ends', 'x')).rejects.toMatchObject({ code: 'EVENT_NOT_SET', status: 'SUCCESS' }),
    );
    await handle.send('tell', { end: true });
    await Promise.all(told);
    const inside = await holdfast.start(reader, {}, 'ends', 'x');
    await holdfast.start(napper, { workflowId: 'deleted' });
    const deleted = expect(client.getEvent('deleted', 'x')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    await holdfast.admin.delete('deleted', { force: true });
    await deleted;
    await inside.send('again', 1);
    expect(await inside.result()).toEqual(['EVENT_NOT_SET', 'EVENT_NOT_SET']);
  });

  test('a wait can be given up, and ends with the Holdfast', async () => {
    await holdfast.start(napper, { workflowId: 'long' });
    const controller = new AbortController();
    const given = client.getEvent('long', 'x', { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    await expect(client.getEvent('long', 'x', { signal: controller.signal })).rejects.toThrow('enough');
    const other = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
    const wait = other.getEvent('long', 'x');
    const ended = expect(wait).rejects.toMatchObject({ code: expect.stringMatching(/CLOSED$/) as string });
    await other.close();
    await ended;
  });

  test('C15 a workflow that waits for an event ends promptly when it is cancelled, and its slot is free', async () => {
    await holdfast.start(napper, { workflowId: 'silent' });
    const running = holdfast.health().running;
    const handle = await holdfast.start(reader, {}, 'silent', 'x', { timeout: '1h' });
    await waitUntil(async () => (await holdfast.admin.steps(handle.workflowId)).items.length === 1, 'it waits');
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await waitUntil(() => holdfast.health().running <= running, 'the slot is free');
  });

  test('what a workflow has read is recorded: a replay reads the same, whatever was set since', async () => {
    const told = await holdfast.start(teller, { workflowId: 'source' }, 'x');
    const handle = await holdfast.start(reader, { workflowId: 'reads' }, 'source', 'x');
    await told.send('tell', { set: 'one' });
    await waitUntil(
      async () => (await rows(`SELECT FROM holdfast.step_result WHERE workflow_id = 'reads'`)).length === 1,
      'it has read',
    );
    await told.send('tell', { set: 'two' });
    await waitUntil(async () => (await client.getEvent('source', 'x')) === 'two', 'it is set again');
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL WHERE workflow_id = 'reads'`,
    );
    await handle.send('again', 1);
    expect(await handle.result()).toEqual(['one', 'two']);
  });

  test('without notifications everything works at the pace of the poll', async () => {
    const deaf = await HoldfastClient.connect({
      database: bed.database.url,
      notifications: false,
      pollInterval: 20,
      logger: silentLogger,
    });
    const handle = await holdfast.start(teller, { workflowId: 'polled' }, 'x');
    const wait = deaf.getEvent('polled', 'x');
    await handle.send('tell', { set: 'seen' });
    expect(await wait).toBe('seen');
    await deaf.close();
  });

  test('C9 an event whose reply was lost recognises its own commit', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const setter = defineWorkflow('setter', () => setEvent('x', 1));
    const lossy = await bed.launch({
      workflows: [setter],
      database: proxy.connectionString(bed.database.url),
      notifications: false,
    });
    const fault = proxy.arm({ do: 'drop-reply' }, /record_event/, { times: 1 });
    const handle = await lossy.start(setter, { workflowId: 'lossy' });
    await handle.result();
    expect(fault.hits).toBe(1);
    expect(await rows(`SELECT FROM holdfast.event WHERE workflow_id = 'lossy'`)).toHaveLength(1);
    await lossy.close();
    await proxy.close();
  });

  test.each<[string, string, string, GetEventOptions?]>([
    ['an empty key', 'w', ''],
    ['a key of 256 bytes', 'w', 'x'.repeat(256)],
    ["a key of Holdfast's own", 'w', 'holdfast:x'],
    ['a workflow ID that is none', '', 'x'],
    ['a timeout that is none', 'w', 'x', { timeout: 'soon' as '1s' }],
    ['a misspelt option', 'w', 'x', { timeOut: 1 } as GetEventOptions],
  ])('%s is refused', async (_, workflowId, key, options) => {
    for (const target of [holdfast, client]) {
      await expect(target.getEvent(workflowId, key, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    await expect(setEvent(key, 1)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  });

  test('an event that cannot be stored is an error in the workflow, recorded as such', async () => {
    const bad = defineWorkflow('bad', async () => {
      const codes: unknown[] = [];
      for (const [key, value] of [
        ['x', () => 1],
        ['holdfast:x', 1],
      ] as const) {
        codes.push(await setEvent(key, value).catch((error: unknown) => (error as { code: string }).code));
      }
      await setEvent('x', 'good');
      return codes;
    });
    const own = await bed.launch({ workflows: [bad] });
    const handle = await own.start(bad, { workflowId: 'bad' });
    expect(await handle.result()).toEqual(['VALUE_NOT_SERIALIZABLE', 'INVALID_ARGUMENT']);
    expect(await own.getEvent('bad', 'x')).toBe('good');
    await own.close();
  });
});

describe('control operations', () => {
  test('C68 a fork has the events as of its step, and no messages; the source is untouched', async () => {
    const handle = await holdfast.start(teller, { workflowId: 'original' }, 'x');
    for (const set of ['a', 'b', 'c']) await handle.send('tell', { set });
    await waitUntil(async () => (await client.getEvent('original', 'x')) === 'c', 'all are set');
    await handle.send('ignored', 'waits');
    const before = await rows(`SELECT * FROM holdfast.event WHERE workflow_id = 'original' ORDER BY seq`);
    // Steps 0 to 3: two messages received, two events set.
    const fork = await holdfast.admin.fork('original', { fromStep: 4, workflowId: 'forked' });
    expect(await client.getEvent('forked', 'x')).toBe('b');
    expect(await rows(`SELECT FROM holdfast.message WHERE workflow_id = 'forked'`)).toHaveLength(0);
    expect(await rows(`SELECT * FROM holdfast.event WHERE workflow_id = 'original' ORDER BY seq`)).toEqual(before);
    await client.send(fork.workflowId, 'tell', { set: 'of the fork' });
    await client.send(fork.workflowId, 'tell', { end: true });
    expect(await client.handle('forked').result()).toBe('told');
    expect(await client.getEvent('forked', 'x')).toBe('of the fork');
    expect(await client.getEvent('original', 'x')).toBe('c');
  });

  test('C69 a rewind takes events back, and what the removed steps received waits again in its old place', async () => {
    const handle = await holdfast.start(teller, { workflowId: 'rewound' }, 'x');
    for (const set of ['a', 'b']) await handle.send('tell', { set });
    await handle.send('tell', { end: true });
    await handle.result();
    await holdfast.admin.rewind('rewound', { toStep: 2 });
    expect(await client.handle('rewound').result()).toBe('told');
    const events = await rows(`SELECT seq, value FROM holdfast.event WHERE workflow_id = 'rewound' ORDER BY seq`);
    expect(events).toEqual([
      { seq: 1, value: '"a"' },
      { seq: 3, value: '"b"' },
    ]);
    const received = await rows(
      `SELECT consumed_seq FROM holdfast.message WHERE workflow_id = 'rewound' ORDER BY position`,
    );
    expect(received).toEqual([{ consumed_seq: 0 }, { consumed_seq: 2 }, { consumed_seq: 4 }]);
  });

  test('C71 deleting leaves no message or event, also not one that is just being sent', async () => {
    const handle = await holdfast.start(teller, { workflowId: 'gone' }, 'x');
    await handle.send('tell', { set: 1 });
    await client.getEvent('gone', 'x');
    // Apart from the one that looks, which would see the activity of its transaction's beginning.
    const sender = new pg.Client({ connectionString: bed.database.url });
    await sender.connect();
    await sender.query('BEGIN');
    await sender.query(`SELECT holdfast.send_message('gone', 'tell', '1')`);
    const deleted = holdfast.admin.delete('gone', { force: true });
    await waitUntil(async () => {
      const { rows: waiting } = await bed.sql.query(
        `SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'delete_workflow'`,
      );
      return waiting.length === 1;
    }, 'the deletion waits for the sender');
    await sender.query('COMMIT');
    await sender.end();
    await deleted;
    expect(await rows(`SELECT FROM holdfast.message WHERE workflow_id = 'gone'`)).toHaveLength(0);
    expect(await rows(`SELECT FROM holdfast.event WHERE workflow_id = 'gone'`)).toHaveLength(0);
    // Whoever takes the ID gets nothing old.
    await holdfast.start(teller, { workflowId: 'gone' }, 'x');
    expect(await client.getEvent('gone', 'x', { timeout: 20 })).toBeUndefined();
  });
});
