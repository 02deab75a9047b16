import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bundle } from '../support/bundle.js';
import { MUTANTS } from './mutants.js';
import { ALL_MUTANTS } from './options.js';
import { programBundle } from './program-bundle.js';
import type { Scenario } from './scenario.js';
import { JUDGES } from './violations.js';

const run = promisify(execFile);

/** In which each mutant has to be found. */
const SCHEDULES = 1_500;
/** Small schedules take about two thousandths of a second each; mutants are found in some tens of them. */
const SMALL = ['--small', '--seeds', String(SCHEDULES)];
/** Of a machine with much else to do. */
const LIMIT_MS = 400_000;

let bundle: Bundle;
beforeAll(async () => {
  bundle = await programBundle(true);
});
afterAll(() => bundle.remove());

describe('in small schedules', () => {
  let verdicts: ReadonlyMap<string | undefined, string | undefined>;
  beforeAll(async () => {
    const { stdout } = await simulated(ALL_MUTANTS, SMALL);
    verdicts = new Map([...stdout.matchAll(/^([\w-]+): (.*);/gm)].map(([, name, verdict]) => [name, verdict]));
  }, LIMIT_MS);

  test.for(MUTANTS.filter(({ isRareInSmall }) => isRareInSmall !== true))(
    'a library with the mistake $name is found out',
    ({ name }) => {
      expect(verdicts.get(name)).toBe('found');
    },
  );

  test('what fails is made smaller, and told line by line', { timeout: LIMIT_MS }, async () => {
    const { stdout } = await simulated('sleep-ends-early', SMALL);
    const [, smallest = ''] = /^the smallest that was found:\n(.*)$/m.exec(stdout) ?? [];
    const { workflows, acts, faults } = JSON.parse(smallest) as Scenario;
    expect([workflows.length, acts, faults.length]).toEqual([1, [], 1]);
    expect(JSON.stringify(workflows)).toContain('"sleep"');
    expect(stdout).toMatch(/^what happens in it:\n(.*\n)*.* VIOLATION timers: /m);
  });
});

test.for(MUTANTS.filter(({ isRareInSmall }) => isRareInSmall === true))(
  'a library with the mistake $name is found out in ordinary schedules',
  { timeout: LIMIT_MS },
  async ({ name, foundBy, seed = 1 }) => {
    const found = await simulated(name, ['--seed', String(seed), '--seeds', String(SCHEDULES), '--quick']);
    expect(found.stdout).toMatch(new RegExp(`^  (${foundBy.join('|')}) after`, 'm'));
    expect(found.code).toBe(1);
  },
);

test('each judge has a mutant to find', () => {
  const finders = new Set<string>(MUTANTS.flatMap(({ foundBy }) => foundBy));
  expect(JUDGES.filter((judge) => !finders.has(judge))).toEqual([]);
});

test('without any of them, the same copy is well', { timeout: LIMIT_MS }, async () => {
  const { stdout } = await run(process.execPath, [bundle.program, '--seeds', '50']);
  expect(stdout).toContain('green');
});

/** Exits with a code other than 0 when something was found. */
async function simulated(
  mutant: string,
  args: readonly string[],
): Promise<{ readonly code?: number; readonly stdout: string }> {
  return (await run(process.execPath, [bundle.program, '--mutant', mutant, ...args]).catch(
    (error: unknown) => error,
  )) as { readonly code?: number; readonly stdout: string };
}
