import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineQuery,
  defineSignal,
  defineWorkflow,
  HoldfastClient,
  receive,
  runStep,
  sleep,
  workflow,
  type Holdfast,
} from '../../src/index.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;

const approve = defineSignal('approve', { schema: z.object({ by: z.string(), at: z.string().optional() }) });
const price = defineSignal('price', { schema: z.string().transform(Number) });
const plain = defineSignal<number>('plain');

const signalled = defineWorkflow('signalled', async () => {
  const approval = await approve.receive({ timeout: '1h' });
  const refused = await price.receive().catch((error: unknown) => (error as { code: string }).code);
  return [approval?.by, refused, await price.receive(), await plain.receive({ timeout: 0 })];
});
const relaying = defineWorkflow('relaying', async (receiver: string) => {
  const handle = holdfast.handle(receiver);
  const refused = await handle
    .signal(approve, { by: 7 as unknown as string })
    .catch((error: unknown) => (error as { code: string }).code);
  await handle.signal(approve, { by: 'a workflow' });
  return refused;
});

interface State {
  readonly seen: unknown[];
}
const state = defineQuery<[], State>('state', { timeout: '5s' });
const add = defineQuery<[number, Map<string, number>], number>('add');
const sneaky = defineQuery('sneaky');
const absent = defineQuery('absent', { timeout: 300 });

const asked = defineWorkflow('asked', async (): Promise<unknown[]> => {
  const seen: unknown[] = [];
  state.handle(() => ({ seen }));
  add.handle((n, map) => n + [...map.values()].reduce((sum, value) => sum + value, 0));
  sneaky.handle(() => sleep(1));
  while (seen.length < 2) seen.push(await receive('t'));
  return seen;
});
const slow = defineWorkflow('slow', async () => {
  absent.handle(() => new Promise(() => undefined));
  await receive('t');
});

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [signalled, relaying, asked, slow], executorId: 'first', pollInterval: 20 });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function records(workflowId: string): Promise<unknown[]> {
  return (
    await bed.sql.query<Record<string, unknown>>('SELECT * FROM holdfast.step_result WHERE workflow_id = $1', [
      workflowId,
    ])
  ).rows;
}
async function open(): Promise<number> {
  return (await bed.sql.query('SELECT FROM holdfast.query_request')).rows.length;
}

describe('signals', () => {
  test('a signal is a typed topic: checked before it is sent, and again when it is received', async () => {
    const handle = await holdfast.start(signalled, { workflowId: 'signalled' });
    await expect(handle.signal(approve, { by: 7 } as unknown as { by: string })).rejects.toMatchObject({
      code: 'SCHEMA_VIOLATION',
    });
    await client.handle('signalled').signal(approve, { by: 'ada' });
    // By name, without the check.
    await client.send('signalled', 'price', 12);
    // What is sent is what the schema takes, and what is received is what it makes of it.
    await handle.signal(price, '12.5', { idempotencyKey: 'once' });
    await handle.signal(price, '13', { idempotencyKey: 'once' });
    expect(await handle.result()).toEqual(['ada', 'SCHEMA_VIOLATION', 12.5, undefined]);
    // @ts-expect-error The value is a text.
    const wrong = (): Promise<void> => handle.signal(price, 12);
    expect(wrong).toBeTypeOf('function');
  });

  test('inside a workflow, a signal is sent durably, and one that does not fit is refused durably', async () => {
    const receiver = await holdfast.start(signalled, {});
    const sender = await holdfast.start(relaying, { workflowId: 'relays' }, receiver.workflowId);
    expect(await sender.result()).toBe('SCHEMA_VIOLATION');
    expect(await records('relays')).toHaveLength(2);
    await receiver.send('price', 'x');
    await receiver.signal(price, '1');
    expect(await receiver.result()).toEqual(['a workflow', NaN, 1, undefined]);
  });

  test.each([[''], ['holdfast:x'], ['a\0']])('the name %j is none', (name) => {
    expect(() => defineSignal(name)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('queries', () => {
  test('a running workflow answers from its memory: in its process, in another one, to a client', async () => {
    const other = await bed.launch({ workflows: [] });
    const handle = await holdfast.start(asked, { workflowId: 'asked' });
    await handle.send('t', { deep: [1] });
    await waitUntil(async () => (await handle.query(state)).seen.length === 1, 'it has seen something');
    for (const target of [holdfast, other, client]) {
      expect(await target.handle('asked').query(state)).toEqual({ seen: [{ deep: [1] }] });
      expect(await target.handle('asked').query(add, 1, new Map([['a', 2]]))).toBe(3);
    }
    // A copy: who asks cannot change the workflow.
    (await handle.query(state)).seen.push('intruder');
    expect(await records('asked')).toHaveLength(1);
    await handle.send('t', 'end');
    expect(await handle.result()).toEqual([{ deep: [1] }, 'end']);
    expect(await open()).toBe(0);
    await other.close();
  });

  test('a query only looks: durable calls throw in it, and what it throws is what the asker gets', async () => {
    const handle = await holdfast.start(asked, {});
    for (const target of [holdfast, client]) {
      await expect(target.handle(handle.workflowId).query(sneaky)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    }
    expect(await records(handle.workflowId)).toHaveLength(0);
    await handle.cancel();
  });

  test('typed errors: no such query, no answer in time, no such workflow, one that has ended', async () => {
    const handle = await holdfast.start(asked, {});
    const silent = await holdfast.start(slow, {});
    for (const target of [holdfast, client]) {
      // Longer than code may take to say how it answers.
      const unknown = { ...absent, timeoutMs: 20_000 };
      await expect(target.handle(handle.workflowId).query(unknown)).rejects.toMatchObject({
        code: 'QUERY_NOT_HANDLED',
      });
      await expect(target.handle(silent.workflowId).query(absent)).rejects.toMatchObject({ code: 'QUERY_TIMEOUT' });
      await expect(target.handle('nobody').query(state)).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    }
    const waiting = [holdfast, client].map((target) =>
      expect(target.handle(silent.workflowId).query({ ...absent, timeoutMs: 20_000 })).rejects.toMatchObject({
        code: 'RECEIVER_ENDED',
        status: 'SUCCESS',
      }),
    );
    await silent.send('t', 1);
    await silent.result();
    await Promise.all(waiting);
    await handle.cancel();
    await expect(handle.query(state)).rejects.toMatchObject({ code: 'RECEIVER_ENDED', status: 'CANCELLED' });
    await expect(handle.query(add, 1, (() => 1) as never)).rejects.toMatchObject({ code: 'VALUE_NOT_SERIALIZABLE' });
    await waitUntil(async () => (await open()) === 0, 'nothing is left of the questions');
  });

  test('a suspended workflow is loaded, replays, and answers from the state that it had', async () => {
    const own = defineWorkflow('unloaded', async () => {
      const seen: unknown[] = [];
      state.handle(() => ({ seen }));
      seen.push(await runStep('once', () => Promise.resolve('a step')));
      seen.push(await receive('t'));
      await receive('never');
    });
    const executor = await bed.launch({ workflows: [own], suspendAfter: 20, pollInterval: 20 });
    const handle = await executor.start(own, { workflowId: 'unloaded' });
    await handle.send('t', 'a message');
    const isSuspended = async (): Promise<boolean> =>
      (await handle.status()) === 'SUSPENDED' && (await records('unloaded')).length === 2;
    await waitUntil(isSuspended, 'it is suspended');
    expect(await client.handle('unloaded').query(state)).toEqual({ seen: ['a step', 'a message'] });
    await waitUntil(isSuspended, 'it is suspended again');
    expect(await handle.query(state)).toEqual({ seen: ['a step', 'a message'] });
    await executor.close();
  });

  test('queries to a workflow that is unloaded sooner than questions are looked for do not time out', async () => {
    const own = defineWorkflow('brief', async () => {
      state.handle(() => ({ seen: ['here'] }));
      await sleep('1h');
    });
    const executor = await bed.launch({ workflows: [own], suspendAfter: 1, pollInterval: '1h' });
    const handle = await executor.start(own, { workflowId: 'brief' });
    for (let time = 1; time <= 3; time++) {
      await waitUntil(async () => (await handle.status()) === 'SUSPENDED', 'it is suspended');
      expect(await client.handle('brief').query(state)).toEqual({ seen: ['here'] });
    }
    await executor.close();
  });

  test('without notifications queries are answered at the pace of the poll', async () => {
    const deaf = await HoldfastClient.connect({
      database: bed.database.url,
      notifications: false,
      pollInterval: 20,
      logger: silentLogger,
    });
    const quiet = await bed.launch({ workflows: [asked], notifications: false, pollInterval: 20 });
    const handle = await quiet.start(asked, {});
    expect(await deaf.handle(handle.workflowId).query(state)).toEqual({ seen: [] });
    await handle.cancel();
    await deaf.close();
    await quiet.close();
  });

  test('a replaced execution does not answer: the owner does', async () => {
    const release = gate();
    const versions = defineWorkflow('versions', async () => {
      const { epoch } = workflow();
      state.handle(() => ({ seen: [epoch] }));
      await release.opened;
    });
    const zombie = await bed.launch({ workflows: [versions], notifications: false, pollInterval: '1h', lease: 200 });
    const handle = await zombie.start(versions, { workflowId: 'versions' });
    expect(await handle.query(state)).toEqual({ seen: [1] });
    const owner = await bed.launch({ workflows: [versions], pollInterval: 20 });
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL WHERE workflow_id = 'versions'`,
    );
    await waitUntil(async () => (await client.handle('versions').status()) === 'PENDING', 'the owner has it');
    await waitUntil(async () => (await client.handle('versions').query(state)).seen[0] === 2, 'the owner answers');
    release.open();
    await owner.handle('versions').result();
    await zombie.close();
    await owner.close();
  });
});
