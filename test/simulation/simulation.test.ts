import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fixedParts, runScenario } from './run-scenario.js';
import { SCENARIOS, type ScopeName } from './scenarios.js';
import { simulate } from './simulate.js';
import { missingSubstance } from './substance.js';

/** Of a machine with much else to do. An idle core takes 20 s for all of them. */
const LIMIT_MS = 400_000;
/** Schedules that the suite runs of each size; `npm run simulate -- --seeds N` runs more. A small one takes a third of the time. */
const SCHEDULES: Readonly<Record<ScopeName, number>> = { ordinary: 1_500, small: 3_000 };
/** Another number, of each size. */
const ASKED = process.env['HOLDFAST_TEST_SCHEDULES'];
const SCOPES: readonly ScopeName[] = ['ordinary', 'small'];

test.for(SCOPES)(
  'whatever the order of events and wherever faults strike, no judge finds anything, and enough has happened: %s schedules',
  { timeout: LIMIT_MS },
  async (scope) => {
    const schedules = ASKED === undefined ? SCHEDULES[scope] : Number(ASKED);
    const { counts, failure } = await simulate(scope, 1, schedules);
    expect(failure).toBeUndefined();
    expect(missingSubstance(scope, counts, schedules)).toEqual([]);
  },
);

test.for(SCOPES)(
  'a schedule is determined by its seed: the same events in the same order, however often it is run: %s ones',
  async (scope) => {
    const fixed = await fixedParts();
    for (const scenario of fc.sample(SCENARIOS[scope], { seed: 7, numRuns: 25 })) {
      const [first, second] = [await runScenario(scenario, fixed), await runScenario(scenario, fixed)];
      expect(second).toEqual(first);
      expect(first.counts.happenings).toBeGreaterThan(0);
    }
  },
);
