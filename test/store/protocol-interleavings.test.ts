import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  ALL_PAIRS,
  type Expectations,
  findAnomalies,
  OPERATIONS,
  type Pair,
  serialResults,
  setScene,
} from './support-interleavings.js';
import { ProtocolBench, register } from './support-protocol.js';

let bench: ProtocolBench;
let expectations: Expectations;

beforeAll(async () => {
  bench = await ProtocolBench.open();
  await registerBoth(bench);
  expectations = await serialResults(bench, ALL_PAIRS);
});
afterAll(() => bench.close());

async function registerBoth({ ask }: ProtocolBench): Promise<void> {
  await register(ask, 'owner', -1_000);
  await register(ask, 'claimer');
}

describe('every ordered pair of writes of one workflow, the first one’s transaction held open', () => {
  for (const first of OPERATIONS) {
    test(`${first.label} and any other write leave what they would leave one after the other`, async () => {
      const pairs = ALL_PAIRS.filter((pair) => pair[0] === first);
      expect(await findAnomalies(bench, pairs, expectations)).toEqual([]);
    });
  }

  test('none of them breaks an invariant of the record', async () => {
    expect(await bench.violations()).toEqual([]);
  });
});

describe('a write that does not own the workflow, or saw an old state of it', () => {
  const stale = OPERATIONS.filter(({ label }) => label.includes('with an old'));

  for (const operation of stale) {
    test(`${operation.label} changes no row of any table`, async () => {
      const scene = await setScene(bench.ask);
      const before = await bench.wholeTables();
      await operation.run(bench.ask, scene);
      expect(await bench.wholeTables()).toEqual(before);
    });
  }

  for (const operation of OPERATIONS) {
    if (/without ownership|cancellation|deletion|claim_workflows/.test(operation.label)) continue;
    test(`${operation.label} by an execution that was taken over meanwhile changes no row of any table`, async () => {
      const scene = await setScene(bench.ask);
      const claimed = OPERATIONS.find(({ label }) => label === 'claim_workflows');
      expect(await claimed?.run(bench.ask, scene)).toBe('through');
      const before = await bench.wholeTables();
      await operation.run(bench.ask, scene);
      expect(await bench.wholeTables()).toEqual(before);
    });
  }
});

describe('the judge notices a protocol that is broken on purpose', () => {
  const mutants: readonly { readonly title: string; readonly mutate: (functions: string) => string }[] = [
    {
      title: 'checkpoint_one without the token',
      mutate: (sql) =>
        replaced(sql, 's.owner_token = p_token AND s.record_version = p_version', 's.record_version = p_version'),
    },
    {
      title: 'the batches without the token',
      mutate: (sql) =>
        replaced(sql, 's.owner_token = r.token AND s.record_version = r.version', 's.record_version = r.version'),
    },
    {
      title: 'checkpoint_one without the version',
      mutate: (sql) =>
        replaced(sql, 's.owner_token = p_token AND s.record_version = p_version', 's.owner_token = p_token'),
    },
    {
      title: 'the batches without the version',
      mutate: (sql) =>
        replaced(sql, 's.owner_token = r.token AND s.record_version = r.version', 's.owner_token = r.token'),
    },
    {
      title: 'a plain SELECT in place of the locking predicate',
      mutate: (sql) => replaced(sql, 'FOR NO KEY UPDATE SKIP LOCKED', ''),
    },
    {
      title: 'a plain SELECT in place of the batches’ locking predicate',
      // Without the lock, a row that has moved on is still not found where it was.
      mutate: (sql) =>
        replaced(
          replaced(sql, 'FOR NO KEY UPDATE OF s SKIP LOCKED', ''),
          's.ctid = l.place',
          's.workflow_id = l.workflow_id',
        ),
    },
    {
      title: 'a claim that keeps the token',
      mutate: (sql) => replaced(sql, 'owner_token = gen_random_uuid(), epoch = s.epoch + 1', 'epoch = s.epoch + 1'),
    },
    {
      title: 'a claim that keeps the version',
      mutate: (sql) =>
        replaced(sql, 'record_version = s.record_version + 1, attempts = s.attempts + 1', 'attempts = s.attempts + 1'),
    },
  ];
  // What the mutants are about, so that each takes a second.
  const labels = ['checkpoint', 'complete_batch', 'claim', 'release'];
  const pairs: readonly Pair[] = ALL_PAIRS.filter((pair) =>
    pair.every(({ label }) => labels.some((part) => label.startsWith(part))),
  );

  for (const [index, { title, mutate }] of mutants.entries()) {
    test(title, async () => {
      const mutant = await bench.mutant(`mutant_${index}`, mutate);
      await registerBoth(mutant);
      const anomalies = await findAnomalies(mutant, pairs, expectations);
      expect(anomalies.length).toBeGreaterThan(0);
      await mutant.leave();
    });
  }
});

function replaced(sql: string, what: string, by: string): string {
  if (!sql.includes(what)) throw new Error(`The functions do not contain "${what}".`);
  return sql.replaceAll(what, by);
}
