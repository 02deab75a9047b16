import { expect, test } from 'vitest';

import { missingTool, search } from './checker.js';
import { CONFIGURATIONS, LIVENESS, MUTANTS, SAFETY } from './configurations.js';

const missing = missingTool();
const LIMIT_MS = 30_000;

// `npm run model` checks the larger ones, and all mutants; CI fails without its tools.
test.each(CONFIGURATIONS.filter(({ size }) => size === 'quick'))(
  'the model of the protocol holds: $name',
  { skip: missing !== undefined },
  async ({ liveness, parameters }) => {
    const { finding } = await search(liveness ?? 'safety', parameters, LIMIT_MS);
    expect(finding).toEqual({ kind: 'holds' });
  },
);

test(
  'without the version, a stale write of the owner itself gets through',
  {
    skip: missing !== undefined,
  },
  async () => {
    const { finding } = await search('results_stay', { LOSSES: 1, NO_VERSION: 1 }, LIMIT_MS);
    expect(finding).toEqual({ kind: 'violated', property: 'results_stay' });
  },
);

test('each property of the model has a mutant that violates it', () => {
  const found = new Set(MUTANTS.flatMap(({ foundBy }) => foundBy));
  expect([...found].sort()).toEqual([...Object.keys(SAFETY), ...Object.keys(LIVENESS)].sort());
});
