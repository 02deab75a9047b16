import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXECUTOR_PROGRAM, runSleeperCampaign } from '../campaigns/sleepers/campaign.js';
import { judgeSleepers } from '../campaigns/sleepers/judges.js';
import { bundle, type Bundle } from '../support/bundle.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let compiled: Bundle;
let database: TestDatabase;
beforeAll(async () => {
  compiled = await bundle(EXECUTOR_PROGRAM);
  database = await createTestDatabase();
});
afterAll(async () => {
  await compiled.remove();
  await database.drop();
});

// The campaign of docs/proof.md in small, with bounds that a machine with other things to do does not break.
test('sleeping workflows need no memory of an executor, and each timer among them fires once', async () => {
  const options = { count: 20_000, rate: 100, seconds: 3 };
  const report = await runSleeperCampaign({
    database: database.url,
    program: compiled.program,
    options,
    settleMs: 1_000,
  });
  const bounds = { latenessMs: 30_000, growthBytes: 16 * 2 ** 20, launchMs: 10_000 };
  expect(judgeSleepers(report, options, bounds).filter(({ is }) => is !== 'green')).toEqual([]);
  expect(report.latenessMs).toHaveLength(300);
});
