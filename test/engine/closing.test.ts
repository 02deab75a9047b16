import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep } from '../../src/index.js';
import { createBed, gate, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

test('closing in the midst of starts, steps, sleeps and ends rejects nothing unhandled and loses nothing', async () => {
  const rejections: unknown[] = [];
  const listener = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', listener);
  const busy = defineWorkflow('busy', async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      await runStep('work', () => Promise.resolve(round));
      if (round % 3 === 0) await sleep(1);
    }
    return rounds;
  });
  const acknowledged = new Set<string>();
  for (let turn = 0; turn < 5; turn++) {
    const holdfast = await bed.launch({ workflows: [busy] });
    const starts = Array.from({ length: 40 }, async (_, index) => {
      const handle = await holdfast.start(busy, { workflowId: `busy-${String(turn)}-${String(index)}` }, index % 12);
      acknowledged.add(handle.workflowId);
    });
    await Promise.race(starts);
    await holdfast.close({ drainMs: turn * 3 });
    await Promise.allSettled(starts);
  }
  const last = await bed.launch({ workflows: [busy] });
  for (const workflowId of acknowledged) {
    expect(await last.handle(workflowId).result()).toBe(Number(workflowId.split('-')[2]) % 12);
  }
  process.off('unhandledRejection', listener);
  expect(acknowledged.size).toBeGreaterThan(5);
  expect(rejections).toEqual([]);
});

test('C12 a shutdown gives back at once, is not an attempt, and fails nothing', async () => {
  const entered = gate();
  const run = defineWorkflow('given-back', () =>
    runStep('work', () => {
      entered.open();
      return attemptsSeen++ === 0 ? new Promise(() => undefined) : Promise.resolve('done');
    }),
  );
  let attemptsSeen = 0;
  const first = await bed.launch({ workflows: [run], executorId: 'leaver' });
  await first.start(run, { workflowId: 'given-back', maxAttempts: 1 });
  await entered.opened;
  await first.close({ drainMs: 0 });
  // With a limit of one attempt, a second one would have been too many.
  const second = await bed.launch({ workflows: [run] });
  expect(await second.handle('given-back').result()).toBe('done');
  expect((await second.admin.get('given-back')).attempts).toBe(1);
  const epochs = (await second.admin.ownership('given-back')).items;
  expect(epochs.map(({ epoch, endedHow }) => [epoch, endedHow])).toEqual([
    [2, 'completed'],
    [1, 'released'],
  ]);
});
