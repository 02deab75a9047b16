import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, Holdfast, runStep } from '../../src/index.js';
import { createBed, gate, silentLogger, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

test('C56 a launch on a pool that was ended says so', async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  await pool.end();
  await expect(
    Holdfast.launch({ workflows: [], database: pool, launchTimeout: 200, logger: silentLogger }),
  ).rejects.toMatchObject({ code: 'LAUNCH_TIMEOUT', message: expect.stringContaining('after calling end') as string });
});

test('C56 a pool that is ended under a running Holdfast: it can be closed, refuses what comes after, and others go on', async () => {
  const [begun, goOn] = [gate(), gate()];
  const runs: string[] = [];
  const work = (name: string) =>
    defineWorkflow('work', async () => {
      await runStep('first', async () => {
        runs.push(`first of ${name}`);
      });
      if (name === 'left') {
        begun.open();
        await goOn.opened;
      }
      return runStep('second', () => Promise.resolve(`second of ${name}`));
    });
  const [workOfLeft, workOfOther] = [work('left'), work('other')];
  const pool = new pg.Pool({ connectionString: bed.database.url });
  const left = await bed.launch({ workflows: [workOfLeft], database: pool, executorId: 'left' });
  const handle = await left.start(workOfLeft, { workflowId: 'w' });
  const told = handle.result().catch((error: unknown) => error);
  await begun.opened;
  await pool.end();
  goOn.open();
  await left.close();
  expect(await told).toMatchObject({ code: expect.stringMatching(/^(?:STORE_)?CLOSED$/) as string });
  await expect(left.start(workOfLeft, {})).rejects.toMatchObject({ code: 'CLOSED' });

  const other = await bed.launch({ workflows: [workOfOther], executorId: 'other' });
  await bed.expireLease('left');
  expect(await other.handle('w').result()).toBe('second of other');
  expect(runs).toEqual(['first of left']);
});
