import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineWorkflow, type StandardSchema } from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const Order = z.object({ id: z.string(), cents: z.number().int().positive(), note: z.string().default('none') });

test('an input that does not fit its schema is refused with the paths, before anything is written', async () => {
  const order = defineWorkflow(
    'order',
    (input: { id: string; cents: number; note?: string }) => Promise.resolve(input),
    {
      input: Order,
    },
  );
  const holdfast = await bed.launch({ workflows: [order] });
  await expect(holdfast.start(order, { workflowId: 'o1' }, { id: 'a', cents: -1 })).rejects.toMatchObject({
    code: 'SCHEMA_VIOLATION',
    issues: [{ path: '$.cents' }],
  });
  await expect(holdfast.handle('o1').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  // What the schema makes of the input is what the workflow gets.
  expect(await (await holdfast.start(order, { workflowId: 'o2' }, { id: 'a', cents: 1 })).result()).toEqual({
    id: 'a',
    cents: 1,
    note: 'none',
  });
});

test('an output that does not fit its schema is the recorded error', async () => {
  const run = defineWorkflow('out', (): Promise<{ id: string }> => Promise.resolve({ id: 1 as unknown as string }), {
    output: z.object({ id: z.string() }),
  });
  const holdfast = await bed.launch({ workflows: [run] });
  await expect((await holdfast.start(run, {})).result()).rejects.toMatchObject({
    code: 'SCHEMA_VIOLATION',
    issues: [{ path: '$.id' }],
  });
});

test('any Standard Schema will do, asynchronous ones too', async () => {
  const even: StandardSchema<number> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) =>
        Promise.resolve(
          typeof value === 'number' && value % 2 === 0 ? { value } : { issues: [{ message: 'must be even' }] },
        ),
    },
  };
  const run = defineWorkflow('even', (n: number) => Promise.resolve(n / 2), { input: even });
  const holdfast = await bed.launch({ workflows: [run] });
  expect(await (await holdfast.start(run, {}, 4)).result()).toBe(2);
  await expect(holdfast.start(run, {}, 3)).rejects.toMatchObject({ code: 'SCHEMA_VIOLATION' });
});

test.each<[string, Record<string, unknown>]>([
  ['an empty ID', { workflowId: '' }],
  ['an ID that is too long', { workflowId: 'x'.repeat(513) }],
  ['an ID with NUL', { workflowId: 'a\0b' }],
  ['an ID with half a surrogate pair', { workflowId: 'a\ud800' }],
  ['a timeout that is no duration', { timeout: 'soon' }],
  ['a negative timeout', { timeout: -1 }],
  ['an attempt limit of zero', { maxAttempts: 0 }],
  ['attributes that are no object', { attributes: [1] }],
  ['attributes that PostgreSQL cannot hold', { attributes: { a: '\0' } }],
])('%s is refused before anything is written', async (_, options) => {
  const run = defineWorkflow('never', () => Promise.resolve());
  const holdfast = await bed.launch({ workflows: [run] });
  await expect(holdfast.start(run, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect((await holdfast.admin.list({ name: 'never' })).items).toEqual([]);
});

test('C52 attributes of 1 MiB are refused with the limit', async () => {
  const run = defineWorkflow('attributes', () => Promise.resolve());
  const holdfast = await bed.launch({ workflows: [run] });
  await expect(holdfast.start(run, { attributes: { big: 'x'.repeat(1024 * 1024) } })).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
  });
});

test('workflow IDs with quotes, colons, percent signs and emoji are IDs like any other', async () => {
  const run = defineWorkflow('odd-ids', (text: string) => Promise.resolve(text));
  const holdfast = await bed.launch({ workflows: [run] });
  for (const workflowId of [`a'b"c`, 'x:y/z', '100%_', '🦀'.repeat(20), 'x'.repeat(512), '{}', '\\', ' ']) {
    expect(await (await holdfast.start(run, { workflowId }, workflowId)).result()).toBe(workflowId);
    expect(await holdfast.handle(workflowId).status()).toBe('SUCCESS');
  }
});
