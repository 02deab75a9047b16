import { afterAll, beforeAll, expect, test } from 'vitest';

import { defineWorkflow, runStep, sleep } from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const flow = defineWorkflow('flow', async () => {
  await runStep('step', () => Promise.resolve());
  await sleep(1);
  return 'done';
});

const schemas = async (): Promise<readonly string[]> =>
  (await bed.sql.query<{ nspname: string }>('SELECT nspname FROM pg_namespace ORDER BY 1')).rows.map(
    ({ nspname }) => nspname,
  );

test.each(['null', '_', 'a'.repeat(48)])('the schema %j works from launch to result', async (schema) => {
  const holdfast = await bed.launch({ schema, workflows: [flow] });
  expect(await (await holdfast.start(flow, {})).result()).toBe('done');
  expect(await schemas()).toContain(schema);
  await holdfast.close();
});

test.each<[unknown]>([
  [''],
  ['a'.repeat(49)],
  ['Holdfast'],
  ['a"; DROP SCHEMA public; --'],
  ['a\n'],
  ['a\0'],
  ['pg_catalog'],
  ['pg_x'],
  ['information_schema'],
  ['é'],
  ['0a'],
  ['a.b'],
  [7],
  [{}],
])('the schema %j is refused with a typed error, before anything is made', async (schema) => {
  const before = await schemas();
  await expect(bed.launch({ schema: schema as string, workflows: [flow] })).rejects.toMatchObject({
    code: expect.stringMatching(/^(SCHEMA_NAME_INVALID|INVALID_ARGUMENT)$/) as string,
  });
  expect(await schemas()).toEqual(before);
});
