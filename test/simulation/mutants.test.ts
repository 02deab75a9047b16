import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Bundle } from '../support/bundle.js';
import { mutatedBundle } from './mutated-bundle.js';
import { MUTANTS } from './mutants.js';
import { MUTANT_VARIABLE } from './options.js';
import { JUDGES } from './violations.js';

const run = promisify(execFile);

/** In which each mutant has to be found. */
const SCHEDULES = 1_500;
/** Of a machine with much else to do. */
const LIMIT_MS = 240_000;

let bundle: Bundle;
beforeAll(async () => {
  bundle = await mutatedBundle();
});
afterAll(() => bundle.remove());

test.for(MUTANTS)(
  'a library with the mistake $name is found out',
  { timeout: LIMIT_MS },
  async ({ name, foundBy, seed = 1 }) => {
    const args = [bundle.program, '--mutant', name, '--seed', String(seed), '--seeds', String(SCHEDULES), '--quick'];
    const found = (await run(process.execPath, args, { env: { ...process.env, [MUTANT_VARIABLE]: name } }).catch(
      (error: unknown) => error,
    )) as { readonly code?: number; readonly stdout: string };
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
