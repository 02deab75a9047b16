import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { EXECUTOR_PROGRAM, runFleetCampaign, type Evidence } from '../campaigns/fleet/campaign.js';
import { judgeFleet } from '../campaigns/fleet/judges/index.js';
import type { Mutant } from '../campaigns/fleet/mutants.js';
import type { FleetOptions } from '../campaigns/fleet/plan.js';
import { sumUp, type Verdict } from '../campaigns/support/verdict.js';
import { bundle, type Bundle } from '../support/bundle.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

// The campaign of docs/proof.md in small. What is said about times there is not said here, where other tests run beside it.

const SMALL: FleetOptions = {
  executors: 4,
  workflows: 200,
  chaosMs: 10_000,
  healMs: 60_000,
  seed: 3,
  leaseMs: 1_000,
  disturbanceMs: 500,
  recoverySlackMs: 20_000,
  stallMs: 20_000,
};

let compiled: Bundle;
let database: TestDatabase;
beforeAll(async () => {
  compiled = await bundle(EXECUTOR_PROGRAM);
});
afterEach(() => database.drop());
afterAll(() => compiled.remove());

async function run(options: FleetOptions, mutant?: Mutant): Promise<Evidence> {
  database = await createTestDatabase();
  return runFleetCampaign({ database: database.url, program: compiled.program, options, mutant });
}

function colours(verdicts: readonly Verdict[]): Record<string, Verdict['is']> {
  return Object.fromEntries(verdicts.map(({ judge, is }) => [judge, is]));
}

test('C32 executors are killed and paused at random: all workflows finish, limits hold for what really runs, each has one outcome', async () => {
  const verdicts = judgeFleet(await run(SMALL));
  expect(verdicts.filter(({ is }) => is !== 'green')).toEqual([]);
  expect(sumUp(verdicts)).toBe('green');
});

test('the judge of limits turns red when the database lets through more than the limits', async () => {
  const verdicts = judgeFleet(await run({ ...SMALL, workflows: 60, chaosMs: 2_000 }, 'no-limit'));
  expect(colours(verdicts)).toMatchObject({ limits: 'red', ends: 'green', outcomes: 'green' });
  expect(sumUp(verdicts)).toBe('red');
});

test('the judges of recovery and ends turn red when nothing is taken over', async () => {
  const options = { ...SMALL, workflows: 60, chaosMs: 4_000, healMs: 2_000 };
  const verdicts = judgeFleet(await run(options, 'no-takeover'));
  expect(colours(verdicts)).toMatchObject({ ends: 'red', recovery: 'red' });
});

test('the judge of fencing turns red when executors that are well are robbed', async () => {
  const verdicts = judgeFleet(await run({ ...SMALL, workflows: 40, chaosMs: 2_500 }, 'live-takeover'));
  expect(colours(verdicts)).toMatchObject({ fencing: 'red', outcomes: 'green' });
});
