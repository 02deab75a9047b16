import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inject } from 'vitest';
import { defineWorkflow, runStep, sleep } from '../../src/index.js';
import { createBed, gate, type Bed } from '../support/launch.js';
import { canRunPgBouncer, startPgBouncer, type PgBouncer } from '../support/pgbouncer.js';

describe.runIf(canRunPgBouncer())('through PgBouncer in transaction mode', () => {
  let bed: Bed;
  let bouncer: PgBouncer;
  beforeAll(async () => {
    bed = await createBed();
    bouncer = await startPgBouncer(inject('databaseUrl'));
  });
  afterAll(async () => {
    await bed.close();
    await bouncer.stop();
  });

  test.each([
    ['with notifications from a direct connection', true],
    ['without notifications', false],
  ])('workflows run, are cancelled, resumed and recovered, %s', async (_, direct) => {
    const name = `bounced-${String(direct)}`;
    const entered = gate();
    const run = defineWorkflow(name, async (n: number) => {
      const parts = await Promise.all([1, 2, 3].map((part) => runStep('part', () => Promise.resolve(n * part))));
      await sleep(5);
      if (n === 99) {
        await runStep('hangs', () => {
          entered.open();
          return hangs ? new Promise(() => undefined) : Promise.resolve();
        });
      }
      return parts;
    });
    let hangs = true;
    const holdfast = await bed.launch({
      workflows: [run],
      database: bouncer.connectionString(bed.database.url),
      ...(direct ? { listenDatabase: bed.database.url } : { notifications: false }),
    });
    const handles = await Promise.all(
      Array.from({ length: 60 }, (_unused, n) => holdfast.start(run, { workflowId: `${name}-${String(n)}` }, n)),
    );
    const results = await Promise.all(handles.map((handle) => handle.result()));
    expect(results).toEqual(Array.from({ length: 60 }, (_unused, n) => [n, n * 2, n * 3]));

    const handle = await holdfast.start(run, { workflowId: `${name}-cancelled` }, 99);
    await entered.opened;
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    hangs = false;
    await holdfast.admin.resume(handle.workflowId);
    expect(await handle.result()).toEqual([99, 198, 297]);
    await holdfast.close();
  });
});
