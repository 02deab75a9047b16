/** What a schedule costs, and which part of it whatever happens in it: `npx tsx test/simulation/cost.ts`. Takes a minute. */
import { fixedParts, runScenario } from './run-scenario.js';
import type { Fault, Scenario } from './scenario.js';
import type { ScopeName } from './scenarios.js';
import { simulate } from './simulate.js';
import { World } from './world.js';

const TURNS = 200_000;
/** A half of them first, so that what is measured is compiled. */
const RUNS = 3_000;

Error.stackTraceLimit = 0;
const fixed = await fixedParts();

await measure('a turn of the scheduler in which nothing happens', 1, turns);
const pause: Fault = { at: 30, process: 0, fault: 'pause', ms: 350, asleep: false };
const crash: Fault = { at: 30, process: 0, fault: 'crash', restartMs: null, sameId: false };
await each('a schedule without executors and work', (seed) => scenarioOf(seed, 0, 0, []));
await each('2 executors', (seed) => scenarioOf(seed, 2, 0, []));
await each('2 executors, a workflow of 2 steps', (seed) => scenarioOf(seed, 2, 2, []));
await each('2 executors, a workflow of 12 steps', (seed) => scenarioOf(seed, 2, 12, []));
await each('2 executors, a workflow of 2 steps, a crash', (seed) => scenarioOf(seed, 2, 2, [crash]));
await each('2 executors, a workflow of 2 steps, a pause beyond the lease', (seed) => scenarioOf(seed, 2, 2, [pause]));
for (const scope of ['small', 'ordinary'] satisfies ScopeName[]) {
  await measure(
    `made up by a seed: ${scope}`,
    RUNS,
    async (runs) => (await simulate(scope, 1, runs)).counts.happenings,
  );
}

async function each(what: string, scenario: (seed: number) => Scenario): Promise<void> {
  await measure(what, RUNS, async (runs) => {
    let events = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const { counts, violations } = await runScenario(scenario(seed), fixed);
      if (violations.length > 0) throw new Error(JSON.stringify(violations));
      events += counts.happenings;
    }
    return events;
  });
}

function scenarioOf(seed: number, executors: number, steps: number, faults: readonly Fault[]): Scenario {
  const program = Array.from({ length: steps }, () => ({ do: 'step', ms: 20, fails: 0 }) as const);
  const workflow = { at: 0, by: 0, queue: null, timeoutMs: null, program };
  return { executors, workflows: steps === 0 ? [] : [workflow], acts: [], faults, healer: 'if-needed', seed };
}

async function turns(runs: number): Promise<number> {
  const world = new World(0);
  const most = runs * TURNS;
  const again = (): void => void world.in(1, undefined, again);
  again();
  await world.run(() => world.happened >= most, { untilMs: Infinity, happenings: most });
  return most;
}

/** `run` says how many events there were. */
async function measure(what: string, runs: number, run: (runs: number) => Promise<number>): Promise<void> {
  await run(Math.ceil(runs / 2));
  const before = process.cpuUsage();
  const events = await run(runs);
  const { user, system } = process.cpuUsage(before);
  const us = user + system;
  const each = runs === 1 ? '' : `${(us / runs).toFixed(0)} µs, ${(events / runs).toFixed(0)} events, `;
  console.log(`${what}: ${each}${(us / events).toFixed(2)} µs an event`);
}
