import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  continueAsNew,
  defineQuery,
  defineUpdate,
  defineWorkflow,
  HoldfastClient,
  receive,
  runStep,
  setEvent,
  sleep,
  type Holdfast,
  type UpdateOptions,
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

interface Item {
  readonly name: string;
  readonly count: number;
}
const addItem = defineUpdate<Item, number>('addItem', { input: z.object({ name: z.string(), count: z.number() }) });
const fail = defineUpdate<string>('fail');
const unstorable = defineUpdate<undefined, unknown>('unstorable');
const unhandled = defineUpdate<number>('unhandled');
const total = defineQuery<[], number>('total');

const runs: string[] = [];
/** A cart that items are added to until it is checked out. */
const cart = defineWorkflow('cart', async () => {
  let count = 0;
  total.handle(() => count);
  addItem.handle(
    async (item) => {
      await runStep('reserve', async () => {
        runs.push(item.name);
        if (item.name.startsWith('slow')) await gateOf(item.name).opened;
      });
      count += item.count;
      return count;
    },
    {
      validate: ({ count: added }) => {
        if (count + added > 10) throw new RangeError(`only ${String(10 - count)} left`);
      },
    },
  );
  fail.handle(async (what) => {
    await setEvent('failing', what);
    throw new TypeError(what);
  });
  unstorable.handle(() => () => 'a function');
  await receive('checkout');
  return count;
});
const shopper = defineWorkflow('shopper', async (cartId: string) => {
  const handle = holdfast.handle(cartId);
  const first = await handle.update(addItem, { name: 'inside', count: 2 });
  const second = await handle
    .update(addItem, { name: 'too many', count: 99 })
    .catch((error: unknown) => (error as { code: string }).code);
  await receive('go on');
  return [first, second];
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [cart, shopper], pollInterval: 20 });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function kinds(workflowId: string): Promise<string> {
  const { rows } = await bed.sql.query<{ kind: string }>(
    `SELECT kind FROM holdfast.step_result WHERE workflow_id = $1 ORDER BY record_version`,
    [workflowId],
  );
  return rows.map(({ kind }) => kind).join(' ');
}

/** Takes a workflow away from whoever runs it and has it claimed again. */
async function rerun(workflowId: string): Promise<void> {
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1
      WHERE workflow_id = $1`,
    [workflowId],
  );
}

describe('updates', () => {
  test('an update is carried out and acknowledged with what the handler returns, one after the other', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'cart' });
    expect(await handle.update(addItem, { name: 'a', count: 1 })).toBe(1);
    const both = [1, 2, 3].map((count) => client.handle('cart').update(addItem, { name: 'b', count }));
    expect((await Promise.all(both)).at(-1)).toBe(7);
    expect(await handle.query(total)).toBe(7);
    await handle.send('checkout', true);
    expect(await handle.result()).toBe(7);
  });

  test('one that does not fit, or that the workflow refuses, is a typed error and changes nothing', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'strict' });
    await expect(handle.update(addItem, { name: 'x', count: 'one' as unknown as number })).rejects.toMatchObject({
      code: 'SCHEMA_VIOLATION',
    });
    expect(await kinds('strict')).toBe('');
    for (const target of [holdfast, client]) {
      const refused = target.handle('strict').update(addItem, { name: 'refused', count: 11 });
      await expect(refused).rejects.toMatchObject({ code: 'UPDATE_REJECTED', cause: { message: 'only 10 left' } });
      // By another definition, without the check of the sender's side.
      const unchecked = target.handle('strict').update(defineUpdate<{ name: number }, number>('addItem'), { name: 7 });
      await expect(unchecked).rejects.toMatchObject({ code: 'UPDATE_REJECTED', cause: { code: 'SCHEMA_VIOLATION' } });
    }
    expect(await handle.query(total)).toBe(0);
    expect(runs).not.toContain('refused');
    await handle.cancel();
  });

  test('what the handler throws, or returns and cannot be stored, is what the caller gets; the workflow goes on', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'fails' });
    await expect(client.handle('fails').update(fail, 'on purpose')).rejects.toThrow(new TypeError('on purpose'));
    expect(await client.getEvent('fails', 'failing')).toBe('on purpose');
    await expect(handle.update(unstorable, undefined)).rejects.toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE' });
    expect(await handle.update(addItem, { name: 'after', count: 1 })).toBe(1);
    await handle.cancel();
  });

  test('under one update ID it is carried out once, and everyone gets the same answer, also after the end', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'once' });
    const options = { updateId: `it's "one": 🙂` };
    const answers = [holdfast, client, holdfast].map((target) =>
      target.handle('once').update(addItem, { name: 'once', count: 3 }, options),
    );
    expect(await Promise.all(answers)).toEqual([3, 3, 3]);
    await handle.send('checkout', true);
    expect(await handle.result()).toBe(3);
    expect(await handle.update(addItem, { name: 'once', count: 3 }, options)).toBe(3);
    expect(runs.filter((name) => name === 'once')).toHaveLength(1);
    await expect(handle.update(addItem, { name: 'late', count: 1 })).rejects.toMatchObject({ code: 'RECEIVER_ENDED' });
  });

  test('one ID for two updates of different names is two requests: each is carried out, and gets its own answer', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'one ID' });
    const options = { updateId: 'order-7' };
    expect(await handle.update(addItem, { name: 'one ID', count: 3 }, options)).toBe(3);
    const failed = { name: 'TypeError', message: 'on purpose' };
    await expect(handle.update(fail, 'on purpose', options)).rejects.toMatchObject(failed);
    expect(await handle.update(addItem, { name: 'one ID', count: 3 }, options)).toBe(3);
    await expect(handle.update(fail, 'on purpose', options)).rejects.toMatchObject(failed);
    await handle.cancel();
  });

  test('after a crash the handler goes on from its record: bodies do not run again, and the answer comes once', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'crash' });
    expect(await handle.update(addItem, { name: 'before', count: 1 })).toBe(1);
    const answer = client.handle('crash').update(addItem, { name: 'slow crash', count: 2 });
    await waitUntil(() => runs.includes('slow crash'), 'the handler runs');
    await rerun('crash');
    await waitUntil(() => runs.filter((name) => name === 'slow crash').length === 2, 'its open step runs again');
    gateOf('slow crash').open();
    expect(await answer).toBe(3);
    expect(runs.filter((name) => name === 'before')).toHaveLength(1);
    await rerun('crash');
    await handle.send('checkout', true);
    expect(await holdfast.handle('crash').result()).toBe(3);
    expect(await kinds('crash')).toBe('receive step event receive step event receive');
  });

  test('C26 what was recorded in the background before the end is replayed, and the outcome is the same', async () => {
    // It ends while the acknowledgement of an update is on its way.
    const ends = defineWorkflow('ends', async () => {
      addItem.handle(({ count }) => count);
      await receive('t');
      return 'ended';
    });
    const own = await bed.launch({ workflows: [ends], pollInterval: 20 });
    const handle = await own.start(ends, { workflowId: 'ends' });
    expect(await handle.update(addItem, { name: 'a', count: 4 })).toBe(4);
    await handle.send('t', 1);
    expect(await handle.result()).toBe('ended');
    // As if the message of the main code had been recorded before the update's.
    await bed.sql.query(`
      UPDATE holdfast.step_result SET record_version = 0 WHERE workflow_id = 'ends' AND name = 't';
      DELETE FROM holdfast.workflow_outcome WHERE workflow_id = 'ends';
      UPDATE holdfast.workflow_status SET status = 'ENQUEUED', completed_at = NULL WHERE workflow_id = 'ends'`);
    await waitUntil(async () => (await handle.status()) === 'SUCCESS', 'it ends again');
    expect(await kinds('ends')).toBe('receive receive event');
    await own.close();
  });

  test('an update that nobody carries out in time is a typed error with the ID to ask again', async () => {
    const handle = await holdfast.start(cart, { workflowId: 'timeout' });
    await expect(handle.update(unhandled, 1, { timeout: 20, updateId: 'mine' })).rejects.toMatchObject({
      code: 'UPDATE_TIMEOUT',
      updateId: 'mine',
    });
    const controller = new AbortController();
    const given = client.handle('timeout').update(unhandled, 1, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    const late = expect(handle.update(unhandled, 2)).rejects.toMatchObject({
      code: 'RECEIVER_ENDED',
      status: 'CANCELLED',
    });
    await waitUntil(async () => {
      const { rows } = await bed.sql.query(`SELECT FROM holdfast.message WHERE workflow_id = 'timeout'`);
      return rows.length === 3;
    }, 'it is sent');
    await handle.cancel();
    await late;
    await expect(client.handle('nobody').update(unhandled, 1)).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  });

  test('inside a workflow an update is made of durable calls: a replay does not send it again', async () => {
    await holdfast.start(cart, { workflowId: 'shopped' });
    const handle = await holdfast.start(shopper, { workflowId: 'shopper' }, 'shopped');
    await waitUntil(async () => (await kinds('shopper')).split(' ').length === 6, 'both are answered');
    await rerun('shopper');
    await handle.send('go on', 1);
    expect(await holdfast.handle('shopper').result()).toEqual([2, 'UPDATE_REJECTED']);
    expect(runs.filter((name) => name === 'inside')).toHaveLength(1);
    expect(await kinds('shopper')).toBe('value send event-read value send event-read receive');
  });

  test('a suspended workflow is woken by an update, and it outlives continue-as-new', async () => {
    const own = defineWorkflow('sleepy', async (round: number): Promise<number> => {
      addItem.handle(({ count }) => round * count);
      await receive('next');
      return round === 1 ? continueAsNew(own, 2) : round;
    });
    const executor = await bed.launch({ workflows: [own], suspendAfter: 20, pollInterval: 20 });
    const handle = await executor.start(own, { workflowId: 'sleepy' }, 1);
    await waitUntil(async () => (await handle.status()) === 'SUSPENDED', 'it is suspended');
    expect(await client.handle('sleepy').update(addItem, { name: 'x', count: 5 })).toBe(5);
    await handle.send('next', 1);
    await waitUntil(async () => (await kinds('sleepy')) === '', 'it has continued as new');
    expect(await client.handle('sleepy').update(addItem, { name: 'x', count: 5 })).toBe(10);
    await handle.send('next', 1);
    expect(await handle.result()).toBe(2);
    await executor.close();
  });

  test('an update that is being carried out when its workflow continues as new is not answered, and its callers hear of it', async () => {
    const restless = defineWorkflow('restless', async (round: number): Promise<number> => {
      addItem.handle(async ({ name, count }) => {
        await runStep('reserve', () => (name === 'slow' ? gateOf('restless').opened : Promise.resolve()));
        return round * count;
      });
      await receive('next');
      return round === 1 ? continueAsNew(restless, 2) : round;
    });
    const caller = defineWorkflow('restless-caller', () =>
      holdfast
        .handle('restless')
        .update(addItem, { name: 'slow', count: 1 }, { updateId: 'of a workflow' })
        .catch((error: unknown) => (error as { status: string }).status),
    );
    const executor = await bed.launch({ workflows: [restless, caller], suspendAfter: 20, pollInterval: 20 });
    const handle = await executor.start(restless, { workflowId: 'restless' }, 1);
    const inside = await executor.start(caller, { workflowId: 'restless-caller' });
    await waitUntil(async () => (await inside.status()) === 'SUSPENDED', 'the caller is suspended');
    const slow = { name: 'slow', count: 1 };
    const outside = client.handle('restless').update(addItem, slow, { updateId: 'of a workflow' });
    const told = expect(outside).rejects.toMatchObject({ code: 'RECEIVER_ENDED', status: 'CONTINUED' });
    // Behind the other one, so the next run has it.
    const behind = client.handle('restless').update(addItem, { name: 'quick', count: 5 });
    await waitUntil(async () => {
      const { rows } = await bed.sql.query(`SELECT FROM holdfast.message WHERE workflow_id = 'restless'`);
      return rows.length === 2;
    }, 'both are sent');
    await handle.send('next', 1);
    await told;
    expect(await inside.result()).toBe('CONTINUED');
    expect(await behind).toBe(10);
    await expect(handle.update(addItem, slow, { updateId: 'of a workflow' })).rejects.toThrow(
      'Workflow "restless" has continued as new without answering update "addItem".',
    );
    gateOf('restless').open();
    expect(await handle.update(addItem, slow, { updateId: 'another' })).toBe(2);
    await handle.send('next', 1);
    expect(await handle.result()).toBe(2);
    await executor.close();
  });

  test('C9 a request and an acknowledgement whose replies were lost are sent once', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const lossy = await bed.launch({
      workflows: [cart],
      database: proxy.connectionString(bed.database.url),
      notifications: false,
      pollInterval: 20,
    });
    const handle = await lossy.start(cart, { workflowId: 'lossy' });
    const faults = [/send_batch/, /consume_message/, /record_event/].map((statement) =>
      proxy.arm({ do: 'drop-reply' }, statement, { times: 1 }),
    );
    expect(await handle.update(addItem, { name: 'lossy', count: 2 })).toBe(2);
    expect(faults.map(({ hits }) => hits)).toEqual([1, 1, 1]);
    expect(await kinds('lossy')).toBe('receive step event');
    expect(runs.filter((name) => name === 'lossy')).toHaveLength(1);
    await lossy.close();
    await proxy.close();
  });

  test.each<[string, UpdateOptions]>([
    ['an empty update ID', { updateId: '' }],
    ['an update ID of 201 bytes', { updateId: 'x'.repeat(201) }],
    ['a timeout that is none', { timeout: 'soon' as '1s' }],
    ['a misspelt option', { id: 'x' } as UpdateOptions],
  ])('%s is refused before anything is sent', async (_, options) => {
    await expect(client.handle('w').update(fail, 'x', options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a validation only looks: durable calls throw in it', async () => {
    const looks = defineWorkflow('looks', async () => {
      fail.handle(() => undefined, { validate: () => sleep(1) });
      await receive('t');
    });
    const own = await bed.launch({ workflows: [looks] });
    const handle = await own.start(looks, {});
    await expect(handle.update(fail, 'x')).rejects.toMatchObject({
      code: 'UPDATE_REJECTED',
      cause: { code: 'OUTSIDE_WORKFLOW' },
    });
    await handle.cancel();
    await own.close();
  });
});
