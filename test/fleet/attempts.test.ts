import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, workflow, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { statusRow } from './support/sweeps.js';

// Attempts are bounded: who has used them up waits for a person, and that person can renew them.

let bed: Bed;
let proxy: PgProxy;
beforeAll(async () => {
  bed = await createBed();
  proxy = await startPgProxyFor(bed.database.url);
});
afterAll(async () => {
  await bed.close();
  await proxy.close();
});

/** Runs a workflow in executors that die one after the other, until it has used up `attempts`. The last one is returned. */
async function useUp(run: Parameters<Holdfast['start']>[0], workflowId: string, attempts: number): Promise<Holdfast> {
  let holdfast = await bed.launch({ workflows: [run], pollInterval: '1h', lease: '1h' });
  await holdfast.start(run, { workflowId, maxAttempts: attempts });
  for (let attempt = 2; attempt <= attempts; attempt++) {
    const next = await bed.launch({ workflows: [run], pollInterval: 10, lease: '1h' });
    await bed.expireLease(holdfast.executorId);
    await waitUntil(async () => (await statusRow(bed.sql, workflowId)).epoch === attempt, 'it is taken over');
    await holdfast.close();
    holdfast = next;
  }
  return holdfast;
}

test('C1 a workflow that never ends is claimed up to its limit, then DEAD_LETTER; resume gives a fresh budget', async () => {
  let bodies = 0;
  let works = false;
  const run = defineWorkflow('never ends', () =>
    runStep('work', () => {
      bodies += 1;
      return works ? Promise.resolve(`at last, attempt ${String(workflow().attempt)}`) : new Promise(() => undefined);
    }),
  );
  const last = await useUp(run, 'never ends', 3);
  await bed.expireLease(last.executorId);
  const judge = await bed.launch({ workflows: [run], pollInterval: 10 });
  await expect(judge.handle('never ends').result()).rejects.toMatchObject({ code: 'MAX_ATTEMPTS_EXCEEDED' });
  expect(bodies).toBe(3);
  expect(await statusRow(bed.sql, 'never ends')).toMatchObject({ status: 'DEAD_LETTER', attempts: 3 });
  const listed = await judge.admin.list({ attention: true });
  expect(listed.items).toMatchObject([{ workflowId: 'never ends', attention: { code: 'DEAD_LETTER' } }]);
  // C2: it is there, so nothing is started, and no attempt spent.
  const again = await judge.start(run, { workflowId: 'never ends' });
  await expect(again.result()).rejects.toMatchObject({ code: 'MAX_ATTEMPTS_EXCEEDED' });
  expect(bodies).toBe(3);
  works = true;
  await judge.admin.resume('never ends');
  expect(await judge.handle('never ends').result()).toBe('at last, attempt 1');
  expect((await judge.admin.list({ attention: true })).items).toEqual([]);
  await last.close();
});

test('C2 starting an ID that is queued or running spends no attempt', async () => {
  const hang = gate();
  const run = defineWorkflow('started twice', () => runStep('work', () => hang.opened));
  const one = await bed.launch({ workflows: [run], appVersion: 'one' });
  // It may start what it may not claim.
  const two = await bed.launch({ workflows: [run], appVersion: 'two' });
  await one.start(run, { workflowId: 'started twice' });
  const running = await statusRow(bed.sql, 'started twice');
  await two.start(run, { workflowId: 'started twice' });
  expect(await statusRow(bed.sql, 'started twice')).toEqual(running);
  await one.close();
  const queued = await statusRow(bed.sql, 'started twice');
  expect(queued).toMatchObject({ status: 'ENQUEUED', attempts: 0 });
  await two.start(run, { workflowId: 'started twice' });
  expect(await statusRow(bed.sql, 'started twice')).toEqual(queued);
  hang.open();
  await two.close();
});

test('C3 a decision to give up that comes late does not hit a workflow whose budget was renewed meanwhile', async () => {
  let works = false;
  const run = defineWorkflow('renewed', () =>
    runStep('work', () => (works ? Promise.resolve('done') : new Promise(() => undefined))),
  );
  const dead = await useUp(run, 'renewed', 1);
  await bed.expireLease(dead.executorId);
  // Its claim, which would give the workflow up, does not get through at first.
  const claim = proxy.arm({ do: 'black-hole' }, /claim_work\(/);
  const late = await bed.launch({
    database: proxy.connectionString(bed.database.url),
    workflows: [run],
    pollInterval: 20,
  });
  await claim.happened;
  const judge = await bed.launch({ workflows: [run], pollInterval: 10 });
  await waitUntil(async () => (await statusRow(bed.sql, 'renewed')).status === 'DEAD_LETTER', 'it is given up');
  await judge.close();
  works = true;
  await late.admin.resume('renewed');
  proxy.cutAll();
  expect(await late.handle('renewed').result()).toBe('done');
  expect(await statusRow(bed.sql, 'renewed')).toMatchObject({ status: 'SUCCESS', attempts: 1 });
  await dead.close();
});
