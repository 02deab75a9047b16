import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep, step, type Reconciliation } from '../../src/index.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';

// Takeovers without end: all executors look dead again and again, while all of them live.

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const WORKFLOWS = 24;
const ROUNDS = 5;
const LEASE_MS = 600;
const HEARTBEAT_MS = LEASE_MS / 3;

test('in a storm of takeovers no body that is atMostOnce is begun twice, and all charges go by their own key', async () => {
  /** The books: how often each key was charged, or begun. */
  const begun = new Map<string, number>();
  const charged = new Map<string, number>();
  const count = (books: Map<string, number>): void => {
    const { idempotencyKey } = step();
    books.set(idempotencyKey, (books.get(idempotencyKey) ?? 0) + 1);
  };
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const storm = defineWorkflow('storm', async (index: number) => {
    for (let round = 0; round < ROUNDS; round++) {
      await runStep(
        'once',
        async () => {
          count(begun);
          await pause(((index + round) % 7) * 20);
        },
        {
          atMostOnce: true,
          reconcile: () => Promise.resolve({ happened: true, result: undefined } as Reconciliation<undefined>),
        },
      ).catch(() => undefined);
      await runStep(
        'charge',
        async () => {
          count(charged);
          await pause(((index + round) % 5) * 20);
          return 'charged';
        },
        {
          reconcile: () =>
            Promise.resolve(
              charged.has(step().idempotencyKey) ? { happened: true, result: 'charged' } : { didNotHappen: true },
            ),
        },
      );
      await sleep(1);
    }
    return index;
  });
  const executors = ['one', 'two', 'three'];
  const fleet = await Promise.all(
    executors.map((executorId) => bed.launch({ workflows: [storm], executorId, pollInterval: 10, lease: LEASE_MS })),
  );
  const [first] = fleet;
  if (first === undefined) throw new Error('No executor.');
  const handles = await Promise.all(
    Array.from({ length: WORKFLOWS }, (_, index) =>
      first.start(storm, { workflowId: `storm ${String(index)}` }, index),
    ),
  );
  const results = Promise.all(handles.map((handle) => handle.result()));
  const storming = { isOver: false };
  void results.finally(() => {
    storming.isOver = true;
  });
  // One after the other, since an executor without a lease takes nothing over; it has one again at its next heartbeat.
  for (let times = 0; !storming.isOver; times++) {
    await bed.expireLease(executors[times % executors.length] ?? '');
    await pause(HEARTBEAT_MS / 2);
  }
  expect(await results).toEqual(Array.from({ length: WORKFLOWS }, (_, index) => index));
  await waitUntil(() => fleet.every((one) => one.health().running === 0), 'nothing runs any more');
  const { rows } = await bed.sql.query<{ takeovers: string }>(
    `SELECT count(*) AS takeovers FROM holdfast.workflow_ownership WHERE ended_how = 'taken over'`,
  );
  expect(Number(rows[0]?.takeovers)).toBeGreaterThan(0);
  expect([...begun.values()].filter((times) => times > 1)).toEqual([]);
  // An owner that is just being replaced may begin a body that its successor has asked for in vain: the key is the same.
  expect(charged.size).toBe(WORKFLOWS * ROUNDS);
});
