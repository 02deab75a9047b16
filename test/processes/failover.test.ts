import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXECUTOR_PROGRAM, runFailoverCampaign } from '../campaigns/failover/campaign.js';
import { judgeFailover } from '../campaigns/failover/judges.js';
import type { FailoverOptions } from '../campaigns/failover/options.js';
import { releaseAsked } from '../campaigns/support/own-server-place.js';
import type { Verdict } from '../campaigns/support/verdict.js';
import { bundle, type Bundle } from '../support/bundle.js';

// The campaign of docs/proof.md in small.

const SMALL: FailoverOptions = {
  rounds: 2,
  seed: 3,
  executors: 2,
  leaseMs: 1_500,
  rate: 4,
  healMs: 90_000,
  release: releaseAsked(process.env),
  mutant: undefined,
  kinds: ['kill', 'mixed'],
  leastAcknowledgements: 100,
};

let compiled: Bundle;
beforeAll(async () => {
  compiled = await bundle(EXECUTOR_PROGRAM);
});
afterAll(() => compiled.remove());

async function run(options: FailoverOptions): Promise<readonly Verdict[]> {
  return judgeFailover(await runFailoverCampaign({ program: compiled.program, options }));
}

test('a synchronous standby is promoted while an executor goes on with the old primary: nothing acknowledged is lost, nothing is doubled', async () => {
  const verdicts = await run(SMALL);
  expect(verdicts.filter(({ is }) => is !== 'green')).toEqual([]);
}, 300_000);

test('the judge of acknowledgements turns red when the standby is not waited for', async () => {
  const verdicts = await run({ ...SMALL, rounds: 1, kinds: ['kill'], mutant: 'asynchronous', healMs: 3_000 });
  expect(verdicts.filter(({ is }) => is === 'red').map(({ judge }) => judge)).toContain('acknowledged');
}, 300_000);
