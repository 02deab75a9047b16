import { expect, test } from 'vitest';
import type { Engine, ExecutorState } from '../../src/engine/engine.js';
import { ClaimLoop } from '../../src/fleet/claim-loop.js';
import { newFleetCounters } from '../../src/fleet/fleet-counters.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';
import type { ClaimAnswer, ClaimedWorkflow, ClaimRequest, ExecutorStore } from '../../src/store/store.js';
import { silentLogger, waitUntil } from '../support/launch.js';

/** A loop on a store that has so many workflows waiting, and what it has asked for. */
function loopOver(
  backlog: { waiting: number },
  { maxConcurrent = 10_000 }: { readonly maxConcurrent?: number } = {},
): { loop: ClaimLoop; asked: ClaimRequest[]; engine: { runningCount: number } } {
  const asked: ClaimRequest[] = [];
  const claim = (request: ClaimRequest): Promise<ClaimAnswer> => {
    asked.push(request);
    const taken = Math.min(request.limit, backlog.waiting);
    backlog.waiting -= taken;
    if (maxConcurrent < 10_000) engine.runningCount += taken;
    const workflows = Array.from({ length: taken }, () => ({ ownership: { epoch: 1 } }) as ClaimedWorkflow);
    return Promise.resolve({ workflows, isLimited: false, againInMs: null, isSoon: false, turns: null });
  };
  const engine = { catalog: { names: [] }, runningCount: 0, mayRun: () => true, adopt: () => undefined };
  const loop = new ClaimLoop({
    runtime: systemRuntime,
    store: { claim } as unknown as ExecutorStore,
    engine: engine as unknown as Engine,
    executor: { identity: { executorId: 'e', incarnation: 1 }, appVersion: '' } as unknown as ExecutorState,
    logger: silentLogger,
    pollMs: 600_000,
    maxConcurrent,
    deadLetterError: '',
    counters: newFleetCounters(),
    onReturned: () => undefined,
  });
  return { loop, asked, engine };
}

test('claims grow while they bring as many as they ask for, and shrink step by step when they do not', async () => {
  const backlog = { waiting: 2_200 };
  const { loop, asked } = loopOver(backlog);
  const limits = (): number[] => asked.map(({ limit }) => limit);
  loop.start();
  await waitUntil(() => backlog.waiting === 0, 'all is claimed');
  expect(limits()).toEqual([100, 200, 400, 800, 800]);
  backlog.waiting = 450;
  loop.wake();
  await waitUntil(() => backlog.waiting === 0, 'all is claimed');
  expect(limits().slice(5)).toEqual([400, 800]);
  for (let time = 0; time < 3; time++) {
    loop.wake();
    await waitUntil(() => asked.length === 8 + time, 'it has asked');
  }
  expect(limits().slice(7)).toEqual([400, 200, 100]);
  await loop.stop();
});

test('of claims that follow one another at once, the first alone looks at wake-ups', async () => {
  const { loop, asked } = loopOver({ waiting: 300 });
  loop.start();
  await waitUntil(() => asked.length === 3, 'all is claimed');
  loop.wake();
  await waitUntil(() => asked.length === 4, 'it has asked');
  expect(asked.map(({ wakeupsSeen }) => wakeupsSeen)).toEqual([false, true, true, false]);
  await loop.stop();
});

test('a full executor fills the slots that get free together: when a fifth is free, or a moment after the first', async () => {
  const { loop, asked, engine } = loopOver({ waiting: 1_000 }, { maxConcurrent: 50 });
  const end = (count: number): void => {
    for (let one = 0; one < count; one++) {
      engine.runningCount -= 1;
      loop.slotFreed();
    }
  };
  loop.start();
  const isFull = async (): Promise<void> => {
    await waitUntil(() => engine.runningCount === 50, 'it is full');
    await new Promise((resolve) => setImmediate(resolve));
  };
  await isFull();
  // Asked at the tenth; what ends while it asks is the next one's.
  end(12);
  await isFull();
  end(1);
  expect(asked.length).toBe(3);
  // Though nothing else ends.
  await isFull();
  expect(asked.map(({ limit }) => limit)).toEqual([50, 10, 2, 1]);
  await loop.stop();
});
