import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fixedParts, runScenario } from './run-scenario.js';
import { scenarios } from './scenario.js';
import { simulate } from './simulate.js';
import { missingSubstance } from './substance.js';

/** Of a machine with much else to do. An idle core takes 20 s. */
const LIMIT_MS = 400_000;
/** Schedules that the suite runs; `npm run simulate -- --seeds N` runs more. */
const SCHEDULES = Number(process.env['HOLDFAST_TEST_SCHEDULES'] ?? 2_500);

test(
  'whatever the order of events and wherever faults strike, no judge finds anything, and enough has happened',
  { timeout: LIMIT_MS },
  async () => {
    const { counts, failure } = await simulate(1, SCHEDULES);
    expect(failure).toBeUndefined();
    expect(missingSubstance(counts, SCHEDULES)).toEqual([]);
  },
);

test('a schedule is determined by its seed: the same events in the same order, however often it is run', async () => {
  const fixed = await fixedParts();
  for (const scenario of fc.sample(scenarios, { seed: 7, numRuns: 25 })) {
    const [first, second] = [await runScenario(scenario, fixed), await runScenario(scenario, fixed)];
    expect(second).toEqual(first);
    expect(first.counts.happenings).toBeGreaterThan(0);
  }
});
