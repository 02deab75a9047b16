import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineWorkflow, Holdfast, HoldfastClient, type AnySchedule, type PayloadCodec } from '../../src/index.js';
import { createBed, silentLogger, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let client: HoldfastClient;

const report = defineWorkflow('report', (city: string, size?: number) => Promise.resolve(`${city} ${String(size)}`));
const noArguments = defineWorkflow('noArguments', () => Promise.resolve());
const strict = defineWorkflow('strict', (input: { n: number }) => Promise.resolve(input.n), {
  input: z.object({ n: z.number() }),
  maxAttempts: 7,
});
const workflows = [report, noArguments, strict];

/** So far away that nothing fires while a test looks. */
const YEARLY = '0 0 1 1 *';

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows, queues: [{ name: 'serial', keyConcurrency: 1 }, { name: 'wide' }] });
  client = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterEach(async () => {
  for (const { name } of await holdfast.schedules.list()) await holdfast.schedules.delete(name);
});
afterAll(async () => {
  await client.close();
  await bed.close();
});

async function storedNext(name: string): Promise<string | undefined> {
  return (await holdfast.schedules.get(name)).nextFireAt?.toISOString();
}

test('a schedule is stored with its defaults, and shown with its arguments', async () => {
  await holdfast.schedules.define({ name: 'yearly', workflow: report, cron: YEARLY, args: ['Berlin', 3] });
  const year = new Date().getUTCFullYear();
  expect(await client.schedules.get('yearly')).toEqual({
    name: 'yearly',
    workflow: 'report',
    instance: null,
    cron: YEARLY,
    timeZone: 'UTC',
    catchUp: 'last',
    overlap: 'skip',
    queue: null,
    priority: 0,
    key: null,
    timeoutMs: null,
    maxAttempts: 100,
    attributes: null,
    paused: false,
    nextFireAt: new Date(Date.UTC(year + 1, 0, 1)),
    lastFiredAt: null,
    lastWorkflowId: null,
    skipped: 0,
    createdAt: expect.any(Date) as Date,
    updatedAt: expect.any(Date) as Date,
    args: { readable: true, value: ['Berlin', 3] },
  });
  expect(await client.schedules.nextFireTimes('yearly', { count: 2 })).toEqual([
    new Date(Date.UTC(year + 1, 0, 1)),
    new Date(Date.UTC(year + 2, 0, 1)),
  ]);
});

const good = { name: 'refused', workflow: report, cron: YEARLY, args: ['Berlin'] } as const;
test.each<[string, object, string]>([
  ['an expression that is none', { cron: '61 * * * *' }, 'CRON_INVALID'],
  ['a time that never comes', { cron: '0 0 30 2 *' }, 'CRON_INVALID'],
  ['a time zone that is none', { timeZone: 'Mars/Base' }, 'CRON_INVALID'],
  ['an empty name', { name: '' }, 'INVALID_ARGUMENT'],
  ['a name that is too long', { name: 'n'.repeat(256) }, 'INVALID_ARGUMENT'],
  ['an option that does not exist', { timezone: 'UTC' }, 'INVALID_ARGUMENT'],
  ['a policy that does not exist', { overlap: 'allow' }, 'INVALID_ARGUMENT'],
  ['ticks that would displace each other', { catchUp: 'all' }, 'INVALID_ARGUMENT'],
  ['a queue that does not exist', { queue: 'nowhere' }, 'QUEUE_NOT_FOUND'],
  ['runs that are to wait in a queue without turns', { overlap: 'queue', queue: 'wide' }, 'INVALID_ARGUMENT'],
  ['a key without a queue', { key: 'k' }, 'INVALID_ARGUMENT'],
  ['a key where the name is the key', { key: 'k', queue: 'serial', overlap: 'queue' }, 'INVALID_ARGUMENT'],
  ['arguments that cannot be stored', { args: [() => 0] }, 'VALUE_NOT_SERIALIZABLE'],
  ['arguments that do not fit the schema', { workflow: strict, args: [{ n: 'one' }] }, 'SCHEMA_VIOLATION'],
  ['attributes that are too large', { attributes: { a: 'a'.repeat(70_000) } }, 'PAYLOAD_TOO_LARGE'],
  ['a function that is no workflow', { workflow: () => Promise.resolve() }, 'WORKFLOW_NOT_REGISTERED'],
])('%s is refused before anything is written', async (_, change, code) => {
  const definition = { ...good, ...change } as typeof good;
  for (const { schedules } of [holdfast, client]) {
    await expect(schedules.define(definition)).rejects.toMatchObject({ code });
  }
  await expect(bed.launch({ workflows, schedules: [definition] })).rejects.toMatchObject({ code });
  expect(await holdfast.schedules.list()).toEqual([]);
});

test('a name without a workflow is refused where workflows are known, and taken where they are not', async () => {
  await expect(
    holdfast.schedules.define({ name: 'elsewhere', workflow: 'elsewhere', cron: YEARLY }),
  ).rejects.toMatchObject({ code: 'WORKFLOW_NOT_REGISTERED' });
  await client.schedules.define({ name: 'elsewhere', workflow: 'elsewhere', cron: YEARLY, args: [1, 'two'] });
  expect((await holdfast.schedules.get('elsewhere')).workflow).toBe('elsewhere');
});

test('wrong arguments do not compile', () => {
  const attempts = (): unknown[] => [
    // @ts-expect-error A city is a text.
    holdfast.schedules.define({ name: 'n', workflow: report, cron: YEARLY, args: [1] }),
    // @ts-expect-error There has to be one.
    holdfast.schedules.define({ name: 'n', workflow: report, cron: YEARLY }),
    // @ts-expect-error It takes none.
    holdfast.schedules.define({ name: 'n', workflow: noArguments, cron: YEARLY, args: [1] }),
    holdfast.schedules.define({ name: 'n', workflow: noArguments, cron: YEARLY }),
    // @ts-expect-error A city is a text.
    Holdfast.launch({ workflows, schedules: [{ name: 'n', workflow: report, cron: YEARLY, args: [1] }] }),
    // @ts-expect-error There has to be one.
    Holdfast.launch({ workflows, schedules: [{ name: 'n', workflow: report, cron: YEARLY }] }),
    Holdfast.launch({
      workflows,
      schedules: [
        { name: 'n', workflow: report, cron: YEARLY, args: ['Berlin', 1] },
        { name: 'm', workflow: noArguments, cron: YEARLY },
        { name: 'o', workflow: 'report', cron: YEARLY, args: ['Berlin'] },
      ],
    }),
  ];
  expect(attempts).toBeTypeOf('function');
});

test.each(['get', 'pause', 'resume', 'delete', 'trigger', 'nextFireTimes'] as const)(
  '%s of a schedule that is not there is a typed error',
  async (verb) => {
    await expect(client.schedules[verb]('nobody')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
    await expect(client.schedules.update('nobody', {})).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
    for (const to of [new Date(0), new Date(1e12)]) {
      await expect(client.schedules.backfill('nobody', { from: new Date(0), to })).rejects.toMatchObject({
        code: 'SCHEDULE_NOT_FOUND',
      });
    }
  },
);

test('C40 a change moves the next tick only where it changes the times, and never that of others', async () => {
  await client.schedules.define({ name: 'edited', workflow: 'strict', cron: YEARLY, args: [{ n: 1 }] });
  await client.schedules.define({ name: 'other', workflow: 'report', cron: '@monthly', args: ['Oslo'] });
  await bed.sql.query(`UPDATE holdfast.schedule SET next_fire_at = next_fire_at + interval '1 day', skipped = 5`);
  const [edited, other] = [await storedNext('edited'), await storedNext('other')];

  await holdfast.schedules.update('edited', {
    args: [{ n: 2 }],
    catchUp: 'all',
    overlap: 'queue',
    queue: 'serial',
    priority: 4,
    timeout: '1h',
    maxAttempts: 3,
    attributes: { team: 'a' },
  });
  expect(await storedNext('edited')).toBe(edited);
  await client.schedules.update('edited', { queue: null, priority: 0, timeout: null, attributes: null });
  expect(await client.schedules.get('edited')).toMatchObject({
    args: { value: [{ n: 2 }] },
    catchUp: 'all',
    overlap: 'queue',
    queue: null,
    priority: 0,
    timeoutMs: null,
    maxAttempts: 3,
    attributes: null,
    skipped: 5,
  });
  await client.schedules.define({ name: 'edited', workflow: 'report', cron: YEARLY, args: ['Rome'] });
  expect(await storedNext('edited')).toBe(edited);

  await client.schedules.update('edited', { timeZone: 'Asia/Tokyo' });
  expect(await storedNext('edited')).toMatch(/-12-31T15:00:00\.000Z$/);
  expect(await storedNext('other')).toBe(other);
});

test.each<[string, object, string]>([
  ['arguments', { args: [{ n: 'two' }] }, 'SCHEMA_VIOLATION'],
  ['an expression', { cron: 'never' }, 'CRON_INVALID'],
  ['a queue', { queue: 'nowhere' }, 'QUEUE_NOT_FOUND'],
  ['a queue without turns', { queue: 'wide', overlap: 'queue' }, 'INVALID_ARGUMENT'],
  ['a policy', { catchUp: 'all' }, 'INVALID_ARGUMENT'],
  ['a priority without a queue', { priority: 1 }, 'INVALID_ARGUMENT'],
  ['a setting that does not exist', { paused: true }, 'INVALID_ARGUMENT'],
])('a change to %s that is not right changes nothing', async (_, changes, code) => {
  await holdfast.schedules.define({ name: 'kept', workflow: strict, cron: YEARLY, args: [{ n: 1 }] });
  const before = await holdfast.schedules.get('kept');
  await expect(holdfast.schedules.update('kept', changes)).rejects.toMatchObject({ code });
  expect(await holdfast.schedules.get('kept')).toEqual(before);
});

test('changes that meet are all made', async () => {
  await client.schedules.define({ name: 'met', workflow: 'report', cron: YEARLY, args: ['Rome'] });
  await Promise.all([
    holdfast.schedules.update('met', { cron: '@monthly' }),
    client.schedules.update('met', { timeZone: 'Asia/Tokyo' }),
    holdfast.schedules.update('met', { maxAttempts: 9 }),
    client.schedules.update('met', { overlap: 'cancel' }),
  ]);
  const { cron, timeZone, maxAttempts, overlap, nextFireAt } = await client.schedules.get('met');
  expect({ cron, timeZone, maxAttempts, overlap }).toEqual({
    cron: '@monthly',
    timeZone: 'Asia/Tokyo',
    maxAttempts: 9,
    overlap: 'cancel',
  });
  expect(nextFireAt?.getUTCHours()).toBe(15);
});

test('C40 a launch applies a declaration when it is new or has changed, and leaves what was edited since', async () => {
  const schedules: AnySchedule[] = [
    { name: 'a', workflow: report, cron: YEARLY, args: ['Paris', new Date(0)] },
    { name: 'b', workflow: strict, cron: YEARLY, args: [{ n: 1 }] },
  ];
  await (await bed.launch({ workflows, schedules })).close();
  expect(await holdfast.schedules.get('b')).toMatchObject({ maxAttempts: 7 });
  await holdfast.schedules.update('a', { cron: '@monthly' });
  await holdfast.schedules.pause('b');
  await bed.sql.query(`UPDATE holdfast.schedule SET next_fire_at = next_fire_at + interval '1 day'`);
  const edited = await holdfast.schedules.list();

  await (await bed.launch({ workflows, schedules })).close();
  expect(await holdfast.schedules.list()).toEqual(edited);

  const [a, b] = schedules as [AnySchedule, AnySchedule];
  await (await bed.launch({ workflows, schedules: [a, { ...b, args: [{ n: 2 }] }] })).close();
  const list = await holdfast.schedules.list();
  expect(list[0]).toEqual(edited[0]);
  expect(await holdfast.schedules.get('b')).toMatchObject({ paused: true, args: { value: [{ n: 2 }] } });
});

test('a declaration whose text a codec encrypts anew each time is recognised as the one applied before', async () => {
  let salt = 0;
  const codec: PayloadCodec = {
    name: 'salted',
    encode: (text) => `${String(salt++)}:${text}`,
    decode: (text) => text.slice(text.indexOf(':') + 1),
  };
  const schedules: AnySchedule[] = [{ name: 'secret', workflow: report, cron: YEARLY, args: ['Paris'] }];
  await (await bed.launch({ workflows, schedules, codecs: [codec] })).close();
  await holdfast.schedules.update('secret', { maxAttempts: 2 });
  await (await bed.launch({ workflows, schedules, codecs: [codec] })).close();
  expect(salt).toBeGreaterThan(1);
  expect(await holdfast.schedules.get('secret')).toMatchObject({ maxAttempts: 2, args: { readable: false } });
});

test('one schedule declared twice is refused', async () => {
  await expect(bed.launch({ workflows, schedules: [good, good] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test('a paused schedule shows no next tick; resuming goes on with the next one from then on', async () => {
  await client.schedules.define({ name: 'paused', workflow: 'report', cron: '@hourly', args: ['Rome'] });
  await client.schedules.pause('paused');
  expect((await client.schedules.get('paused')).nextFireAt).toBeNull();
  await bed.sql.query(`UPDATE holdfast.schedule SET next_fire_at = now() - interval '5 hours'`);
  const [next] = await client.schedules.nextFireTimes('paused');
  expect(next?.getTime()).toBeGreaterThan(Date.now());
  await client.schedules.resume('paused');
  const resumed = await client.schedules.get('paused');
  expect(resumed).toMatchObject({ paused: false, lastFiredAt: null, skipped: 0 });
  expect(resumed.nextFireAt?.getTime()).toBeGreaterThan(Date.now());
  // Resuming what is not paused moves nothing.
  await bed.sql.query(`UPDATE holdfast.schedule SET next_fire_at = next_fire_at + interval '1 hour'`);
  const before = await client.schedules.get('paused');
  await client.schedules.resume('paused');
  expect(await client.schedules.get('paused')).toEqual(before);
});
