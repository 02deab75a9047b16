import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import fc from '../support/fast-check.js';
import { operation, type Operation } from './support/operations.js';
import { kindOf, newToken, Side, WORKFLOW_IDS } from './support/side.js';
import { MemoryBed, POSTGRESQL, type StoreBed } from './support/store-bed.js';

/** Sequences of operations; more by `HOLDFAST_TEST_SEQUENCES=1000 HOLDFAST_TEST_SEED=random`. */
const SEQUENCES = Number(process.env['HOLDFAST_TEST_SEQUENCES'] ?? 20);
/** Replays one sequence: the seed and the path that fast-check has printed, with a colon between them. */
const [SEED, PATH] = process.env['HOLDFAST_TEST_REPLAY']?.split(/:(.*)/) ?? [];
const SHORTEST = 50;
const LONGEST = 100;
const TIMEOUT_MS = 60_000 + SEQUENCES * 2_000;

const memory = new MemoryBed();
let postgresql: StoreBed;
beforeAll(async () => {
  postgresql = await POSTGRESQL.open();
});
afterAll(async () => {
  await postgresql.close();
});

test(
  'whatever they are asked, and in whatever order, the store in memory and the one on PostgreSQL answer the same and record the same',
  async () => {
    const sequences = fc.array(operation, { minLength: SHORTEST, maxLength: LONGEST });
    await fc.assert(fc.asyncProperty(sequences, compare), {
      numRuns: SEQUENCES,
      ...(SEED === undefined || PATH === undefined ? {} : { seed: Number(SEED), path: PATH }),
      endOnFailure: process.env['HOLDFAST_TEST_SHRINK'] === undefined,
    });
  },
  TIMEOUT_MS,
);

async function compare(operations: readonly Operation[]): Promise<void> {
  const seen = new Map<string, unknown>();
  const sides = [await Side.begin(memory), await Side.begin(postgresql)] as const;
  for (const [place, next] of operations.entries()) {
    if (isAmbiguous(next)) continue;
    const token = newToken();
    const what = `${String(place)}: ${JSON.stringify(next)}`;
    const [answer, other] = [await sides[0].apply(next, token), await sides[1].apply(next, token)];
    if (!bothRefuse(answer, other)) expect(answer, what).toEqual(other);
    for (const workflowId of WORKFLOW_IDS) {
      const found = await sides[0].look(workflowId);
      // What has changed on one side only, unseen here, is seen at the end.
      if (isDeepStrictEqual(found, seen.get(workflowId))) continue;
      seen.set(workflowId, found);
      expect(found, `${workflowId} after ${what}`).toEqual(await sides[1].look(workflowId));
    }
  }
  for (const workflowId of WORKFLOW_IDS) {
    expect(await sides[0].look(workflowId), `${workflowId} in the end`).toEqual(await sides[1].look(workflowId));
  }
  expect(await sides[0].lookAtFleet(), 'the fleet in the end').toEqual(await sides[1].lookAtFleet());
}

/** A number that is used twice, and a second reason to write nothing: which of them is named is open. */
function bothRefuse(...answers: readonly unknown[]): boolean {
  const kinds = answers.map(kindOf);
  return kinds.includes('nondeterminism') && kinds.every((kind) => REFUSALS.includes(kind));
}

const REFUSALS: readonly unknown[] = [
  'nondeterminism',
  'child-name-taken',
  'deduplicated',
  'no-queue',
  'no-receiver',
  'receiver-ended',
];

/** Which of several a claim takes first is open: of what dead executors left, of what is due at one moment, and out of turn. */
function isAmbiguous(next: Operation): boolean {
  if (next.op !== 'claim') return false;
  const { workflows, executors, queues } = memory.database;
  const now = memory.now() + 1;
  const isBounded = (queue: string | null): boolean =>
    next.limit < WORKFLOW_IDS.length || (queue !== null && queues.has(queue));
  const rivals = [...workflows.values()].filter(({ status, executorId, incarnation, wakeAt, workflowId, queue }) => {
    if (!isBounded(queue)) return false;
    if (next.only?.some((id) => id === workflowId) === true && queue !== null && status !== 'PENDING') return true;
    if (status === 'SUSPENDED') return memory.database.wakeUps.has(workflowId) || (wakeAt !== null && wakeAt <= now);
    const owner = executors.find((row) => row.executorId === executorId && row.incarnation === incarnation);
    return status === 'PENDING' && owner !== undefined && owner.leaseUntil <= now;
  });
  return rivals.length > 1;
}
