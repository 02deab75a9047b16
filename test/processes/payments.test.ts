import { afterAll, beforeAll, expect, test } from 'vitest';
import { compilePrograms, type Evidence, type Programs, runPaymentsCampaign } from '../campaigns/payments/campaign.js';
import { judgePayments } from '../campaigns/payments/judges/index.js';
import type { Mutant } from '../campaigns/payments/mutants.js';
import type { PaymentsOptions } from '../campaigns/payments/plan.js';
import { sumUp, type Verdict } from '../campaigns/support/verdict.js';
import { createTestDatabase } from '../support/database.js';

// The campaign of docs/proof.md in small.

const SMALL: PaymentsOptions = {
  workers: 5,
  orders: 50,
  chaosMs: 8_000,
  healMs: 90_000,
  seed: 3,
  leaseMs: 1_500,
  strikeMs: 300,
  traps: 40,
  troubleShare: 0.2,
};

/** Nobody is struck: what goes wrong outside is enough. */
const CALM: PaymentsOptions = {
  ...SMALL,
  workers: 2,
  orders: 24,
  chaosMs: 1_000,
  healMs: 30_000,
  strikeMs: 10_000,
  troubleShare: 0.5,
};

let programs: Programs;
beforeAll(async () => {
  programs = await compilePrograms();
});
afterAll(() => programs.remove());

async function run(options: PaymentsOptions, mutant?: Mutant): Promise<Evidence> {
  const database = await createTestDatabase();
  try {
    return await runPaymentsCampaign({ database: database.url, programs, options, mutant });
  } finally {
    await database.drop();
  }
}

async function redJudges(options: PaymentsOptions, mutant?: Mutant): Promise<readonly string[]> {
  return judgePayments(await run(options, mutant))
    .filter(({ is }) => is === 'red')
    .map(({ judge }) => judge);
}

/** On a machine with much else to do too few may be struck. That shows nothing, so it is done again. */
const MOST_RUNS = 3;

test('workers are killed and paused between every two moments of a payment: by the provider’s ledger nobody pays twice, or for nothing', async () => {
  let verdicts: readonly Verdict[] = [];
  for (let runs = 0; runs < MOST_RUNS && sumUp(verdicts) !== 'red'; runs++) {
    verdicts = judgePayments(await run({ ...SMALL, seed: SMALL.seed + runs }));
    if (sumUp(verdicts) === 'green') break;
  }
  expect(verdicts.filter(({ is }) => is !== 'green')).toEqual([]);
}, 300_000);

test('a shop that charges again under another key, and one that undoes nothing, are found', async () => {
  const [again, forNothing] = await Promise.all([
    redJudges(CALM, 'key-per-attempt'),
    redJudges(CALM, 'no-compensation'),
  ]);
  expect(again).toContain('charged-once');
  expect(forNothing).toEqual(expect.arrayContaining(['charged-for-nothing', 'stock']));
}, 150_000);
